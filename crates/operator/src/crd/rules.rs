//! What the API server itself checks (CEL): the rules that elsewhere are kept by webhooks, and so hold without one.

/// A rule at a place of a kind's schema.
#[derive(Debug, Clone)]
pub struct Rule {
    pub kind: &'static str,
    /// Names of properties from the root to the place.
    pub path: &'static [&'static str],
    pub rule: String,
    pub message: String,
    /// The rule speaks of `oldSelf` and is to be checked at creation too, when there is none.
    pub on_create: bool,
}

/// Statuses in which a host of a new cluster cannot be given to another.
const INSTALLING: &str = "['preparing-for-installation', 'preparing-failed', 'preparing-successful', 'installing', \
    'installing-in-progress', 'installing-pending-user-action']";

/// What may change in an AgentClusterInstall after the installation has begun.
pub const FREE_WHILE_INSTALLING: [&str; 2] = ["clusterMetadata", "ignitionEndpoint"];

/// Who manages the network where nobody says it, of an object `WHO`.
const NETWORK_MANAGED_BY_USER: &str = "((has(WHO.spec.platformType) && WHO.spec.platformType in ['None', 'External']) \
    || (WHO.spec.provisionRequirements.controlPlaneAgents == 1 && (!has(WHO.spec.provisionRequirements.workerAgents) \
    || WHO.spec.provisionRequirements.workerAgents == 0)))";

/// A field below the spec, and what its absence means; `WHO` stands for the object.
type Field = (&'static [&'static str], &'static str);

/// What an installation that has begun is made of. Objects are taken apart: one without anything in it is as good as none.
pub const FROZEN: &[Field] = &[
    (&["clusterDeploymentRef", "name"], "''"),
    (&["imageSetRef", "name"], "''"),
    (&["networking", "machineNetwork"], "[]"),
    (&["networking", "clusterNetwork"], "[]"),
    (&["networking", "serviceNetwork"], "[]"),
    (&["networking", "networkType"], "''"),
    (&["networking", "userManagedNetworking"], NETWORK_MANAGED_BY_USER),
    (&["sshPublicKey"], "''"),
    (&["ntpSources"], "[]"),
    (&["controlPlane", "name"], "''"),
    (&["controlPlane", "hyperthreading"], "'Enabled'"),
    (&["arbiter", "name"], "''"),
    (&["arbiter", "hyperthreading"], "'Enabled'"),
    (&["compute"], "[]"),
    (&["apiVIP"], "''"),
    (&["apiVIPs"], "[]"),
    (&["ingressVIP"], "''"),
    (&["ingressVIPs"], "[]"),
    (&["holdInstallation"], "false"),
    (&["diskEncryption", "enableOn"], "'none'"),
    (&["diskEncryption", "mode"], "''"),
    (&["diskEncryption", "tangServers"], "''"),
    (&["proxy", "httpProxy"], "''"),
    (&["proxy", "httpsProxy"], "''"),
    (&["proxy", "noProxy"], "''"),
    (&["platformType"], "''"),
    (&["external", "platformName"], "'Unknown'"),
    (&["external", "cloudControllerManager"], "''"),
    (&["mastersSchedulable"], "false"),
    (&["manifestsConfigMapRef", "name"], "''"),
    (&["manifestsConfigMapRefs"], "[]"),
    (&["mirrorRegistryRef", "name"], "''"),
    (&["mirrorRegistryRef", "namespace"], "''"),
    (&["loadBalancer", "type"], "'ClusterManaged'"),
];

/// What may change again after the end of an installation.
pub const COUNTS: &[Field] = &[
    (&["provisionRequirements", "controlPlaneAgents"], "0"),
    (&["provisionRequirements", "workerAgents"], "0"),
    (&["provisionRequirements", "arbiterAgents"], "0"),
];

/// All but the one that forbids changing an InfraEnv's cluster, which some set-ups need to leave out.
pub fn always() -> Vec<Rule> {
    let mut rules = infra_env();
    rules.extend(agent());
    rules.extend(agent_cluster_install());
    rules.extend(agent_classification());
    rules
}

/// Hosts of an InfraEnv go to the cluster it was made for.
pub fn cluster_ref_stays() -> Rule {
    rule(
        "InfraEnv",
        &["spec"],
        same("clusterRef"),
        "clusterRef cannot be set, changed or removed after creation",
    )
}

fn infra_env() -> Vec<Rule> {
    let architecture = |who: &str| {
        format!(
            "(has({who}.cpuArchitecture) && {who}.cpuArchitecture != '' ? {who}.cpuArchitecture : 'x86_64')"
        )
    };
    let both = "(has(self.clusterRef) && has(self.osImageVersion) && self.osImageVersion != '')";
    vec![
        rule(
            "InfraEnv",
            &["spec"],
            format!("{} == {}", architecture("self"), architecture("oldSelf")),
            "cpuArchitecture cannot be changed",
        ),
        Rule {
            on_create: true,
            ..rule(
                "InfraEnv",
                &["spec"],
                format!("oldSelf.hasValue() || !{both}"),
                "give either clusterRef or osImageVersion, not both",
            )
        },
    ]
}

fn agent() -> Vec<Rule> {
    let disks = |who: &str| {
        format!(
            "(has({who}.installation_disk_id) && {who}.installation_disk_id != '' \
             && has({who}.installation_disk_path) && {who}.installation_disk_path != '')"
        )
    };
    let installs = format!(
        "(has(oldSelf.status) && has(oldSelf.status.debugInfo) && has(oldSelf.status.debugInfo.state) \
         && oldSelf.status.debugInfo.state in {INSTALLING})"
    );
    let same_cluster = "(has(self.spec.clusterDeploymentName) ? (has(oldSelf.spec.clusterDeploymentName) \
         && self.spec.clusterDeploymentName == oldSelf.spec.clusterDeploymentName) \
         : !has(oldSelf.spec.clusterDeploymentName))";
    let leaves_day_2 = "(!has(self.spec.clusterDeploymentName) && has(oldSelf.status.kind) \
         && oldSelf.status.kind == 'AddToExistingClusterHost')";
    vec![
        // Speaks of the old object, so that it is not checked at creation: a restored Agent must not be refused.
        rule(
            "Agent",
            &["spec"],
            format!("!{} || {}", disks("self"), disks("oldSelf")),
            "give either installation_disk_id or installation_disk_path, not both",
        ),
        rule(
            "Agent",
            &[],
            format!("!{installs} || {same_cluster} || {leaves_day_2}"),
            "clusterDeploymentName cannot be changed while the host is being installed",
        ),
    ]
}

fn agent_cluster_install() -> Vec<Rule> {
    let single_node = "(self.provisionRequirements.controlPlaneAgents == 1 && (!has(self.provisionRequirements.workerAgents) \
         || self.provisionRequirements.workerAgents == 0))";
    let managed = |value: &str| {
        format!(
            "(has(self.networking.userManagedNetworking) && self.networking.userManagedNetworking == {value})"
        )
    };
    let [needs_user, manages_itself] = ["['None', 'External']", "['BareMetal', 'Nutanix']"]
        .map(|names| format!("(has(self.platformType) && self.platformType in {names})"));
    let mut rules = vec![
        rule(
            "AgentClusterInstall",
            &["spec"],
            "!has(oldSelf.imageSetRef) || (has(self.imageSetRef) && self.imageSetRef == oldSelf.imageSetRef)"
                .into(),
            "imageSetRef cannot be changed",
        ),
        rule(
            "AgentClusterInstall",
            &["spec"],
            format!("!({single_node} && {})", managed("false")),
            "a cluster of one host has user managed networking",
        ),
        rule(
            "AgentClusterInstall",
            &["spec"],
            format!("!({needs_user} && {})", managed("false")),
            "platforms None and External need user managed networking",
        ),
        rule(
            "AgentClusterInstall",
            &["spec"],
            format!("!({manages_itself} && {} && !{single_node})", managed("true")),
            "platforms BareMetal and Nutanix manage their network themselves",
        ),
        rule(
            "AgentClusterInstall",
            &["spec", "external", "platformName"],
            "oldSelf == 'Unknown' || self == oldSelf".into(),
            "the name of the platform can be set once",
        ),
    ];
    rules.extend(frozen());
    rules
}

/// Once an installation has begun, most of the spec stays as it is. A rule for each field, so that whoever changes
/// several is told of all of them: a text that is put together is too costly for the API server.
fn frozen() -> impl Iterator<Item = Rule> {
    let stays = FROZEN.iter().map(|field| {
        let began = began("['InstallationInProgress', 'InstallationCompleted', 'InstallationFailed']");
        keeps(field, &began, "the installation has begun", "any more")
    });
    let counts = COUNTS.iter().map(|field| {
        let began = began("['InstallationInProgress']");
        keeps(field, &began, "the installation is under way", "before its end")
    });
    stays.chain(counts)
}

fn keeps((path, empty): &Field, when: &str, why: &str, until: &str) -> Rule {
    let same = same_value(path, empty);
    let message = format!("{why}: spec.{} cannot be changed {until}", path.join("."));
    rule("AgentClusterInstall", &[], format!("!{when} || {same}"), &message)
}

fn began(reasons: &str) -> String {
    format!(
        "(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, \
         c.type == 'Completed' && has(c.reason) && c.reason in {reasons}))"
    )
}

fn agent_classification() -> Vec<Rule> {
    let name = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
    // The mark of a query that failed goes before it, and both together must be a legal value: 63 characters.
    let value = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,50}[A-Za-z0-9])?";
    vec![
        rule(
            "AgentClassification",
            &["spec"],
            same("labelKey"),
            "labelKey cannot be changed",
        ),
        rule(
            "AgentClassification",
            &["spec"],
            same("labelValue"),
            "labelValue cannot be changed",
        ),
        rule(
            "AgentClassification",
            &["spec", "labelKey"],
            format!("self.matches('^{name}$')"),
            "labelKey must be a legal name of a label",
        ),
        rule(
            "AgentClassification",
            &["spec", "labelValue"],
            format!("self == '' || self.matches('^{value}$')"),
            "labelValue must be a legal value of a label of at most 52 characters",
        ),
        rule(
            "AgentClassification",
            &["spec", "labelValue"],
            "!self.startsWith('QUERYERROR')".into(),
            "labelValue cannot begin with QUERYERROR",
        ),
    ]
}

fn same(field: &str) -> String {
    same_of("self", "oldSelf", field)
}

/// A field that may be absent is the same in both objects.
fn same_of(new: &str, old: &str, field: &str) -> String {
    format!(
        "(has({new}.{field}) ? (has({old}.{field}) && {new}.{field} == {old}.{field}) : !has({old}.{field}))"
    )
}

/// A field means the same in both objects, whether it is written out or left to its default.
fn same_value(path: &[&str], empty: &str) -> String {
    // The language keeps some words to itself.
    let escaped = |name: &&str| match *name {
        "namespace" => "__namespace__".to_owned(),
        name => name.to_owned(),
    };
    let path: Vec<String> = path.iter().map(escaped).collect();
    let value = |who: &str| {
        let whole = format!("{who}.spec.{}", path.join("."));
        let there: Vec<String> = (1..=path.len())
            .map(|depth| format!("has({who}.spec.{})", path[..depth].join(".")))
            .collect();
        format!(
            "({} ? {whole} : {})",
            there.join(" && "),
            empty.replace("WHO", who)
        )
    };
    format!("{} == {}", value("self"), value("oldSelf"))
}

fn rule(kind: &'static str, path: &'static [&'static str], rule: String, message: &str) -> Rule {
    Rule {
        kind,
        path,
        rule,
        message: message.into(),
        on_create: false,
    }
}
