//! The chart with a real Helm: linted, rendered with all values people choose from, installed, upgraded, removed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::kube::Cluster;
use crate::{process, project, tools, wait};

/// The API server sees new roles a moment after they were made.
pub const RIGHTS_LIMIT: Duration = Duration::from_secs(30);

pub const NAMESPACE: &str = "muster";

/// An object of ours, which must outlive the release that brought its kind.
const INFRA_ENV: &str = "\
apiVersion: agent-install.openshift.io/v1beta1
kind: InfraEnv
metadata: {name: rack-1, namespace: muster}
spec: {pullSecretRef: {name: pull-secret}}
";

/// Values that must be refused, and a word of the refusal.
const REFUSED: &[(&str, &str)] = &[
    ("replicas=2", "existingSecret"),
    ("operator.mode=sometimes", "mode"),
    ("hub.baseURL=http://hub.example.com", "baseURL"),
    ("hub.baseUrl=hub.example.com", "baseUrl"),
    ("ingress.enabled=true", "host"),
    ("persistence.size=large", "size"),
    ("operator.ironicConfig=without-a-namespace", "ironicConfig"),
    ("tls.plain.enabled=true", "tls.secretName"),
    ("tls.plain.url=https://firmware.example.com", "url"),
];

pub fn run() -> Result<()> {
    let helm = Helm {
        program: tools::ensure_helm()?,
        chart: project::root().join("deploy/chart/muster"),
        config: None,
    };
    let choices = choices(&helm.chart)?;
    helm.ask(&["lint", "--strict", helm.chart()?])?;
    for values in &choices {
        helm.ask(&["lint", "--strict", helm.chart()?, "--values", values])?;
    }
    for (values, word) in REFUSED {
        refuses(&helm, values, word)?;
    }
    let cluster = Cluster::start()?;
    let helm = Helm {
        config: Some(cluster.admin.clone()),
        ..helm
    };
    install(&helm, &cluster)?;
    super::guide::run(&cluster, &helm.program)?;
    for values in &choices {
        upgrade(&helm, &cluster, values).with_context(|| format!("with {values}"))?;
    }
    uninstall(&helm, &cluster)?;
    comes_back(&helm, &cluster).context("installed again")?;
    groups(&helm)?;
    speaks_https(&helm)?;
    sees_ironic(&helm)?;
    super::plain::run(&cluster).context("the plain manifests")
}

struct Helm {
    program: PathBuf,
    chart: PathBuf,
    config: Option<PathBuf>,
}

impl Helm {
    fn chart(&self) -> Result<&str> {
        self.chart.to_str().context("the clone has a strange name")
    }

    fn command(&self, words: &[&str]) -> Result<Command> {
        // Helm keeps its own files under these; a test must not touch those of its user.
        let home = project::cache().join("helm-home");
        fs::create_dir_all(&home)?;
        let mut command = Command::new(&self.program);
        project::without_proxy(&mut command)
            .env("HELM_CACHE_HOME", home.join("cache"))
            .env("HELM_CONFIG_HOME", home.join("config"))
            .env("HELM_DATA_HOME", home.join("data"))
            .env("HELM_NAMESPACE", NAMESPACE)
            .args(words);
        if let Some(config) = &self.config {
            command.env("KUBECONFIG", config);
        }
        Ok(command)
    }

    fn ask(&self, words: &[&str]) -> Result<String> {
        let done = self.command(words)?.stdin(Stdio::null()).output();
        let done = done.context("cannot start helm")?;
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
        ensure!(
            done.status.success(),
            "`helm {}` failed:\n{said}",
            words.join(" ")
        );
        Ok(said)
    }
}

/// The files with values the chart's authors thought of.
fn choices(chart: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(chart.join("ci"))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path().display().to_string()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    ensure!(!files.is_empty(), "the chart has no values to try");
    Ok(files)
}

fn refuses(helm: &Helm, values: &str, word: &str) -> Result<()> {
    let words = ["template", "muster", helm.chart()?, "--set", values];
    let Err(refusal) = helm.ask(&words) else {
        bail!("the chart accepts {values}");
    };
    let said = refusal.to_string();
    ensure!(
        said.contains(word),
        "{values} is refused without naming {word}: {said}"
    );
    Ok(())
}

fn install(helm: &Helm, cluster: &Cluster) -> Result<()> {
    let label = "pod-security.kubernetes.io/enforce=restricted";
    cluster.ask(&["create", "namespace", NAMESPACE])?;
    cluster.ask(&["label", "namespace", NAMESPACE, label])?;
    // No pods will run here, so there is nothing to wait for.
    let notes = helm.ask(&["install", "muster", helm.chart()?])?;
    ensure!(
        notes.contains("hub.baseUrl is not set"),
        "the notes do not warn:\n{notes}"
    );
    // What else a newcomer misses: the image, and kinds that are not ours.
    for word in ["names no registry", "deploy/crds-hive"] {
        ensure!(notes.contains(word), "the notes do not speak of {word}:\n{notes}");
    }
    cluster.await_kinds()?;
    admits_pods(cluster)?;
    super::eviction::is_limited(cluster)?;
    offers_metrics(cluster, true)?;
    may(
        cluster,
        &["create", "agents.agent-install.openshift.io", "--namespace=rack"],
        true,
    )?;
    may(
        cluster,
        &[
            "patch",
            "agents.agent-install.openshift.io",
            "--subresource=status",
        ],
        true,
    )?;
    may(
        cluster,
        &["create", "leases.coordination.k8s.io", "--namespace=muster"],
        true,
    )?;
    may(
        cluster,
        &["create", "leases.coordination.k8s.io", "--namespace=kube-system"],
        false,
    )?;
    may(cluster, &["delete", "secrets"], false)?;
    // Without it OpenShift refuses to let it change their owners.
    cluster.apply(&project::root().join("deploy/crds-hive"))?;
    cluster.await_kinds()?;
    may(
        cluster,
        &[
            "delete",
            "clusterdeployments.hive.openshift.io",
            "--namespace=rack",
        ],
        true,
    )?;
    may(cluster, &["get", "pods"], false)?;
    may(
        cluster,
        &["create", "clusterrolebindings.rbac.authorization.k8s.io"],
        false,
    )?;
    super::rights::run(cluster).context("rights of others")?;
    feed(cluster, &["apply", "-f", "-"], INFRA_ENV)
}

/// Where OpenShift runs Ironic, and nowhere else, its pods may be seen; as the component for plain manifests has it. The
/// right follows the Secret that says where Ironic is.
fn sees_ironic(helm: &Helm) -> Result<()> {
    let component = project::root().join("deploy/components/ironic/role.yaml");
    let component: Value = serde_norway::from_str(&fs::read_to_string(component)?)?;
    let usual = component["metadata"]["namespace"].as_str();
    let openshift = "--api-versions=metal3.io/v1alpha1/Provisioning";
    let elsewhere = "--set=operator.ironicConfig=metal/ironic";
    for (words, namespace) in [
        (&[][..], None),
        (&[elsewhere][..], None),
        (&[openshift][..], usual),
        (&[openshift, elsewhere][..], Some("metal")),
    ] {
        let rendered = helm.ask(&[&["template", "muster", helm.chart()?], words].concat())?;
        let objects: Vec<Value> = rendered
            .split("\n---\n")
            .filter_map(|text| serde_norway::from_str(text).ok())
            .collect();
        for kind in ["Role", "RoleBinding"] {
            let place = |object: &Value| object["metadata"]["namespace"].as_str().map(str::to_owned);
            let is_there = |object: &&Value| [usual, Some("metal")].contains(&place(object).as_deref());
            let of_kind = objects.iter().filter(|object| object["kind"] == kind);
            let found: Vec<&Value> = of_kind.filter(is_there).collect();
            let places: Vec<Option<String>> = found.iter().map(|object| place(object)).collect();
            let expected: Vec<Option<String>> = namespace.map(str::to_owned).into_iter().map(Some).collect();
            ensure!(
                places == expected,
                "with {words:?} each {kind} for Ironic's pods is in {places:?}"
            );
            for role in found.iter().filter(|_| kind == "Role") {
                ensure!(role["rules"] == component["rules"], "{role:?}");
            }
        }
        let flag = rendered.contains("--ironic-config=metal/ironic");
        ensure!(
            flag == words.contains(&elsewhere),
            "the operator is told the Secret: {flag}"
        );
    }
    Ok(())
}

/// The group of volumes: the chart's own, none when none is wanted, and none where OpenShift chooses.
fn groups(helm: &Helm) -> Result<()> {
    let openshift = "--api-versions=security.openshift.io/v1";
    let choices: [(&[&str], bool); 4] = [
        (&[], true),
        (&["--set", "fsGroup=1234"], true),
        (&["--set", "fsGroup=null"], false),
        (&[openshift], false),
    ];
    for (words, wanted) in choices {
        let rendered = helm.ask(&[&["template", "muster", helm.chart()?], words].concat())?;
        ensure!(
            rendered.contains("fsGroup:") == wanted,
            "with {words:?} the group of volumes is not as it should be"
        );
    }
    Ok(())
}

/// With a certificate everybody who reaches the hub speaks https, and without one nobody does.
fn speaks_https(helm: &Helm) -> Result<()> {
    let secret = "--set=tls.secretName=cert,tls.caKey=ca.crt";
    for (words, scheme) in [(&[][..], "http"), (&[secret][..], "https")] {
        let separate = [
            "template",
            "muster",
            helm.chart()?,
            "--set=operator.mode=separate",
        ];
        let rendered = helm.ask(&[&separate, words].concat())?;
        let is_secure = scheme == "https";
        for (text, wanted) in [
            (format!("--base-url={scheme}://"), true),
            (format!("--hub={scheme}://"), true),
            (format!("targetPort: {scheme}\n"), true),
            (format!("port: {scheme}\n"), true),
            ("scheme: HTTPS".to_owned(), is_secure),
            ("--tls-key=/etc/muster-tls/tls.key".to_owned(), is_secure),
            ("--service-ca=/etc/muster-tls/ca.crt".to_owned(), is_secure),
            ("--ca=/etc/muster-tls/ca.crt".to_owned(), is_secure),
            ("--plain-listen".to_owned(), false),
        ] {
            ensure!(
                rendered.contains(&text) == wanted,
                "with {words:?} {text:?} is not as it should be"
            );
        }
    }
    Ok(())
}

/// The Service of the operator's metrics leads to a container that serves them.
fn offers_metrics(cluster: &Cluster, wanted: bool) -> Result<()> {
    let get = |what: &[&str]| -> Result<Value> {
        let words = [&["get", "--namespace", NAMESPACE, "--output=json"], what].concat();
        Ok(serde_json::from_str(&cluster.ask(&words)?)?)
    };
    let service = get(&["service", "muster-metrics", "--ignore-not-found"]).unwrap_or_default();
    ensure!(service.is_object() == wanted, "the Service of metrics: {service}");
    if !wanted {
        return Ok(());
    }
    let selector = service["spec"]["selector"].as_object().context("no selector")?;
    let deployments = get(&["deployments"])?;
    let leads_to = |deployment: &&Value| {
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        selector.iter().all(|(key, value)| labels[key] == *value)
    };
    let all = deployments["items"].as_array().context("no list")?;
    let found: Vec<_> = all.iter().filter(leads_to).collect();
    let [found] = found[..] else {
        bail!("the Service of metrics leads to {} Deployments", found.len());
    };
    let container = &found["spec"]["template"]["spec"]["containers"][0];
    let (ports, args) = (container["ports"].to_string(), container["args"].to_string());
    ensure!(
        ports.contains("\"metrics\"") && args.contains("--metrics="),
        "{ports} {args}"
    );
    ensure!(
        args.contains("--log-format=json"),
        "its log is for people: {args}"
    );
    Ok(())
}

/// Pods as the Deployments would make them pass the strictest rules Kubernetes has built in.
pub fn admits_pods(cluster: &Cluster) -> Result<()> {
    let list: Value = serde_json::from_str(&cluster.ask(&[
        "get",
        "deployments",
        "--namespace",
        NAMESPACE,
        "--output=json",
    ])?)?;
    let deployments = list["items"].as_array().context("no list")?;
    ensure!(!deployments.is_empty(), "the release has no Deployment");
    for deployment in deployments {
        let template = &deployment["spec"]["template"];
        let name = &deployment["metadata"]["name"];
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": template["metadata"]["labels"]},
            "spec": template["spec"],
        });
        let words = ["create", "--dry-run=server", "-f", "-"];
        feed(cluster, &words, &pod.to_string()).with_context(|| format!("a pod of {name}"))?;
    }
    Ok(())
}

/// Whether the release's account may do something.
fn may(cluster: &Cluster, wish: &[&str], wanted: bool) -> Result<()> {
    let account = format!("--as=system:serviceaccount:{NAMESPACE}:muster");
    let what = format!(
        "the operator's account {} {}",
        if wanted { "may" } else { "may not" },
        wish.join(" ")
    );
    wait::until(&what, RIGHTS_LIMIT, || {
        let mut asked = cluster.kubectl();
        asked.args(["auth", "can-i", "--quiet", &account]).args(wish);
        Ok((process::succeeds(&mut asked) == wanted).then_some(()))
    })
}

fn upgrade(helm: &Helm, cluster: &Cluster, values: &str) -> Result<()> {
    helm.ask(&[
        "upgrade",
        "muster",
        helm.chart()?,
        "--reset-values",
        "--values",
        values,
    ])?;
    admits_pods(cluster)?;
    super::eviction::is_limited(cluster)?;
    let hub = |path: &str| {
        let path = format!("--output=jsonpath={path}");
        cluster.ask(&["get", "deployment", "muster", "--namespace", NAMESPACE, &path])
    };
    let given: Value = serde_norway::from_str(&fs::read_to_string(values)?)?;
    let has_operator = given["operator"]["mode"] != "none";
    offers_metrics(cluster, has_operator)?;
    super::rights::takes_part(cluster, has_operator)?;
    let secret = given["database"]["existingSecret"].as_str().unwrap_or_default();
    let from = hub(
        "{.spec.template.spec.containers[0].env[?(@.name==\"MUSTER_DATABASE\")].valueFrom.secretKeyRef.name}",
    )?;
    ensure!(from == secret, "the database's address comes from {from:?}");
    let claim = hub("{.spec.template.spec.volumes[*].persistentVolumeClaim.claimName}")?;
    ensure!(
        claim.is_empty() != secret.is_empty(),
        "with database {secret:?} the hub mounts {claim:?}"
    );
    has_installers(&given["hub"]["installers"], &hub)?;
    if has_operator {
        stays_within(cluster, &given["operator"]["namespaces"])?;
    }
    let replicas = given["replicas"].as_u64().unwrap_or(1).to_string();
    ensure!(
        hub("{.spec.replicas}")? == replicas,
        "the hub does not have {replicas} replicas"
    );
    // The data of SQLite is there whatever the release looks like now.
    let claims = cluster.ask(&["get", "pvc", "--namespace", NAMESPACE, "--output=name"])?;
    ensure!(
        claims.contains("persistentvolumeclaim/muster"),
        "the volume is gone"
    );
    Ok(())
}

/// Each program is copied to where the hub looks for that release.
fn has_installers(given: &Value, hub: &dyn Fn(&str) -> Result<String>) -> Result<()> {
    let wanted: Vec<Value> = given.as_array().into_iter().flatten().map(copying).collect();
    let copies = hub("{.spec.template.spec.initContainers[*].command}")?;
    let copies: Vec<Value> = serde_json::Deserializer::from_str(&copies)
        .into_iter()
        .collect::<Result<_, _>>()?;
    ensure!(copies == wanted, "{copies:?} are copied, not {wanted:?}");
    let args = hub("{.spec.template.spec.containers[0].args}")?;
    let is_told = args.contains("\"--openshift-install=/installers/{version}\"");
    ensure!(is_told != wanted.is_empty(), "the hub looks elsewhere: {args}");
    Ok(())
}

/// Rights of the operator are in the namespaces it looks after, and only there.
fn stays_within(cluster: &Cluster, namespaces: &Value) -> Result<()> {
    let of = |verb: &str, kind: &str, namespace: &str, allowed: bool| {
        may(cluster, &[verb, kind, "--namespace", namespace], allowed)
    };
    let limited = namespaces.as_array().is_some_and(|all| !all.is_empty());
    for namespace in namespaces
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        of("patch", "agents.agent-install.openshift.io", namespace, true)?;
        of("list", "secrets", namespace, true)?;
    }
    of("list", "secrets", "kube-system", !limited)?;
    of(
        "patch",
        "agents.agent-install.openshift.io",
        "kube-system",
        !limited,
    )?;
    may(cluster, &["list", "clusterimagesets.hive.openshift.io"], true)
}

fn copying(installer: &Value) -> Value {
    let from = installer["path"].as_str().unwrap_or("/bin/openshift-install");
    let version = installer["version"].as_str().unwrap_or_default();
    json!(["cp", from, format!("/installers/{version}")])
}

/// The programs and their rights go; kinds, objects and data stay.
fn uninstall(helm: &Helm, cluster: &Cluster) -> Result<()> {
    helm.ask(&["uninstall", "muster"])?;
    let left = cluster.ask(&[
        "get",
        "deployments,services,serviceaccounts,roles,rolebindings,configmaps,ingresses,pdb,networkpolicies",
        "--namespace",
        NAMESPACE,
        "--selector=app.kubernetes.io/instance=muster",
        "--output=name",
    ])?;
    ensure!(left.is_empty(), "left behind: {left}");
    let wide = cluster.ask(&[
        "get",
        "clusterroles,clusterrolebindings",
        "--selector=app.kubernetes.io/instance=muster",
        "--output=name",
    ])?;
    ensure!(wide.is_empty(), "left behind: {wide}");
    cluster.ask(&["get", "infraenv", "rack-1", "--namespace", NAMESPACE])?;
    cluster.ask(&["get", "pvc", "muster", "--namespace", NAMESPACE])?;
    Ok(())
}

/// The next release of that name finds the data of the one before.
fn comes_back(helm: &Helm, cluster: &Cluster) -> Result<()> {
    let uid = || {
        let path = "--output=jsonpath={.metadata.uid}";
        cluster.ask(&["get", "pvc", "muster", "--namespace", NAMESPACE, path])
    };
    let before = uid()?;
    helm.ask(&["install", "muster", helm.chart()?])?;
    ensure!(uid()? == before, "the volume is another one");
    uninstall(helm, cluster)
}

/// `kubectl` with something to read.
pub fn feed(cluster: &Cluster, words: &[&str], text: &str) -> Result<()> {
    let mut command = cluster.kubectl();
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start kubectl")?;
    child
        .stdin
        .take()
        .context("no way to talk to kubectl")?
        .write_all(text.as_bytes())?;
    let done = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(
        done.status.success(),
        "`kubectl {}` failed: {said}",
        words.join(" ")
    );
    Ok(())
}
