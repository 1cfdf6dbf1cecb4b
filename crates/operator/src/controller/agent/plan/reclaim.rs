//! What is put into a cluster so that one of its nodes fetches the discovery image and boots it.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use muster_contract::v1::host::HostDetail;
use serde_json::{Value, json};

const NAMESPACE: &str = "assisted-installer";
const NAME: &str = "node-reclaim";

/// In the order in which they are made. The last one starts an agent on that node alone; it never registers, so that the
/// old system is not taken for a host that came back.
pub fn objects(image: &str, node: &Node, row: &HostDetail) -> Vec<Value> {
    let infra_env = row.host.infra_env_id;
    let secret = format!("reclaim-{infra_env}-token");
    let meta = |name: &str| json!({ "name": name, "namespace": NAMESPACE });
    let rbac = "rbac.authorization.k8s.io";
    vec![
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
        daemon_set(image, node, row, &secret),
    ]
}

fn daemon_set(image: &str, node: &Node, row: &HostDetail, secret: &str) -> Value {
    let name = format!("{}-reclaim", node.name_any().replace('.', "-"));
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
                "containers": [container(image, row, secret)],
                "volumes": [{ "name": "host", "hostPath": { "path": "/", "type": "Directory" } }],
            }},
        },
    })
}

fn container(image: &str, row: &HostDetail, secret: &str) -> Value {
    json!({
        "name": "reclaim",
        "image": image,
        "command": ["muster-agent"],
        "args": [
            "--installed",
            format!("--url={}", hub_url(row)),
            format!("--infra-env-id={}", row.host.infra_env_id),
            format!("--host-id={}", row.host.id),
        ],
        "env": [{ "name": "PULL_SECRET_TOKEN", "valueFrom": { "secretKeyRef": { "name": secret, "key": "auth-token" } } }],
        "securityContext": { "privileged": true, "runAsUser": 0 },
        "volumeMounts": [{ "name": "host", "mountPath": "/host" }],
    })
}

/// As hosts and people reach it.
fn hub_url(row: &HostDetail) -> &str {
    row.events_url.split_once("/api/").map_or("", |(base, _)| base)
}
