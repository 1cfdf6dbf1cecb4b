//! What is put into a cluster so that one of its nodes fetches the discovery image and boots it.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use muster_contract::v1::host::HostDetail;
use muster_contract::v1::trust::TrustView;
use serde_json::{Value, json};

const NAMESPACE: &str = "assisted-installer";
const NAME: &str = "node-reclaim";
/// What the agent needs to know the hub.
const CONFIG: &str = "reclaim-config";
/// Where discovery images have the same.
const CA_PLACE: &str = "/etc/assisted-service";
const CA_FILE: &str = "service-ca-cert.crt";
/// Of a label's value.
const LONGEST: usize = 63;

/// In the order in which they are made. The last one starts an agent on that node alone; it never registers, so that the
/// old system is not taken for a host that came back.
pub fn objects(image: &str, node: &Node, row: &HostDetail, trust: &TrustView) -> Vec<Value> {
    let infra_env = row.host.infra_env_id;
    let secret = format!("reclaim-{infra_env}-token");
    let meta = |name: &str| json!({ "name": name, "namespace": NAMESPACE });
    let rbac = "rbac.authorization.k8s.io";
    let mut objects = vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": NAMESPACE, "labels": { "pod-security.kubernetes.io/enforce": "privileged" },
        }}),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(NAME) }),
        json!({ "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": meta(NAME), "rules": [{
            "apiGroups": ["security.openshift.io"], "resources": ["securitycontextconstraints"],
            "resourceNames": ["privileged"], "verbs": ["use"],
        }]}),
        json!({ "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": meta(NAME),
            "roleRef": { "apiGroup": rbac, "kind": "Role", "name": NAME },
            "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE }],
        }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta(&secret), "stringData": { "auth-token": "" } }),
    ];
    if !trust.service_ca.is_empty() {
        objects.push(
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(CONFIG),
            "data": { CA_FILE: trust.service_ca } }),
        );
    }
    let container = container(image, row, &secret, trust);
    objects.push(daemon_set(container, node, row, trust));
    objects
}

/// Called after the node as long as that fits into a label, and else after the host.
fn name(node: &Node, row: &HostDetail) -> String {
    let readable = format!("{}-reclaim", node.name_any().replace('.', "-"));
    match readable.len() {
        0..=LONGEST => readable,
        _ => format!("{}-reclaim", row.host.id),
    }
}

fn daemon_set(container: Value, node: &Node, row: &HostDetail, trust: &TrustView) -> Value {
    let name = name(node, row);
    let labels = json!({ "name": name });
    let host_name = node
        .labels()
        .get("kubernetes.io/hostname")
        .cloned()
        .unwrap_or_else(|| node.name_any());
    json!({ "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            // Gone with its node.
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": node.name_any(), "uid": node.uid() }],
        },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": {
                "serviceAccountName": NAME,
                "nodeSelector": { "kubernetes.io/hostname": host_name },
                "tolerations": [{ "operator": "Exists" }],
                "priorityClassName": "system-node-critical",
                "hostPID": true,
                "hostNetwork": true,
                "containers": [container],
                "volumes": volumes(trust),
            }},
        },
    })
}

fn volumes(trust: &TrustView) -> Vec<Value> {
    let mut volumes = vec![json!({ "name": "host", "hostPath": { "path": "/", "type": "Directory" } })];
    if !trust.service_ca.is_empty() {
        volumes.push(json!({ "name": "config", "configMap": { "name": CONFIG } }));
    }
    volumes
}

/// The trusted certificates, as discovery images give them to the agent.
fn container(image: &str, row: &HostDetail, secret: &str, trust: &TrustView) -> Value {
    let mut args = vec![
        "--installed".to_owned(),
        format!("--url={}", hub_url(row)),
        format!("--infra-env-id={}", row.host.infra_env_id),
        format!("--host-id={}", row.host.id),
    ];
    let mut mounts = vec![json!({ "name": "host", "mountPath": "/host" })];
    if trust.insecure {
        args.push("--insecure=true".into());
    }
    if !trust.service_ca.is_empty() {
        args.push(format!("--cacert={CA_PLACE}/{CA_FILE}"));
        mounts.push(json!({ "name": "config", "mountPath": CA_PLACE, "readOnly": true }));
    }
    json!({
        "name": "reclaim",
        "image": image,
        "command": ["muster-agent"],
        "args": args,
        "env": [{ "name": "PULL_SECRET_TOKEN", "valueFrom": { "secretKeyRef": { "name": secret, "key": "auth-token" } } }],
        "securityContext": { "privileged": true, "runAsUser": 0 },
        "volumeMounts": mounts,
    })
}

/// As hosts and people reach it.
fn hub_url(row: &HostDetail) -> &str {
    row.events_url.split_once("/api/").map_or("", |(base, _)| base)
}
