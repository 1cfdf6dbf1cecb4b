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

/// Reasons of the condition Completed of an installation that has begun.
const BEGAN: &str = "['InstallationInProgress', 'InstallationCompleted', 'InstallationFailed']";

/// What may change in an AgentClusterInstall after the installation has begun.
pub const FREE_WHILE_INSTALLING: [&str; 2] = ["clusterMetadata", "ignitionEndpoint"];

/// Who manages the network where nobody says it. What the installation began with counts: workers that come later do not
/// make another network of it.
const NETWORK_MANAGED_BY_USER: &str = "((has(oldSelf.spec.platformType) \
    && oldSelf.spec.platformType in ['None', 'External']) \
    || (oldSelf.spec.provisionRequirements.controlPlaneAgents == 1 \
    && (!has(oldSelf.spec.provisionRequirements.workerAgents) \
    || oldSelf.spec.provisionRequirements.workerAgents == 0)))";

/// A field below the spec, and what its absence means.
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
    vec![rule(
        "InfraEnv",
        &["spec"],
        format!("{} == {}", architecture("self"), architecture("oldSelf")),
        "cpuArchitecture cannot be changed",
    )]
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
            &["spec", "external", "platformName"],
            "oldSelf == 'Unknown' || self == oldSelf".into(),
            "the name of the platform cannot be changed once it is set",
        ),
    ];
    rules.extend(networks());
    rules.extend(external());
    rules.extend(frozen());
    rules
}

/// Who manages the network of which platform. Once the installation has begun that cannot be changed any more, and must
/// not keep anybody from adding workers.
fn networks() -> [Rule; 3] {
    let single_node = "(self.spec.provisionRequirements.controlPlaneAgents == 1 \
         && (!has(self.spec.provisionRequirements.workerAgents) || self.spec.provisionRequirements.workerAgents == 0))";
    let managed = |value: &str| {
        format!(
            "(has(self.spec.networking.userManagedNetworking) \
             && self.spec.networking.userManagedNetworking == {value})"
        )
    };
    let [needs_user, manages_itself] = ["['None', 'External']", "['BareMetal', 'Nutanix']"]
        .map(|names| format!("(has(self.spec.platformType) && self.spec.platformType in {names})"));
    let contradictions = [
        (
            format!("({single_node} && {})", managed("false")),
            "a cluster of one host needs user managed networking",
        ),
        (
            format!("({needs_user} && {})", managed("false")),
            "platforms None and External need user managed networking",
        ),
        (
            format!("({manages_itself} && {} && !{single_node})", managed("true")),
            "platforms BareMetal and Nutanix manage their network themselves",
        ),
    ];
    contradictions.map(|(contradiction, message)| {
        let began = began("self", BEGAN);
        let message = format!("spec.networking.userManagedNetworking: {message}");
        rule(
            "AgentClusterInstall",
            &[],
            format!("!{contradiction} || {began}"),
            &message,
        )
    })
}

/// What an external platform has to say of itself. One that was stored without it stays as it is.
fn external() -> [Rule; 2] {
    let is_external = |who: &str| format!("(has({who}.platformType) && {who}.platformType == 'External')");
    let named = |who: &str| {
        format!(
            "(!{} || (has({who}.external) && has({who}.external.platformName) && {who}.external.platformName != ''))",
            is_external(who)
        )
    };
    let oci = |who: &str| {
        format!(
            "(!{} || !has({who}.external) || !has({who}.external.platformName) \
             || {who}.external.platformName != 'oci' || (has({who}.external.cloudControllerManager) \
             && {who}.external.cloudControllerManager == 'External'))",
            is_external(who)
        )
    };
    let of_new = |holds: &dyn Fn(&str) -> String, message: &str| Rule {
        on_create: true,
        ..rule(
            "AgentClusterInstall",
            &["spec"],
            format!(
                "{} || (oldSelf.hasValue() && !{})",
                holds("self"),
                holds("oldSelf.value()")
            ),
            message,
        )
    };
    [
        of_new(&named, "platformType External needs external with a platformName"),
        of_new(
            &oci,
            "external.platformName oci needs external.cloudControllerManager External",
        ),
    ]
}

/// Once an installation has begun, most of the spec stays as it is. A rule for each field, so that the refusal of
/// several changes names all of them: a text that is put together is too costly for the API server.
fn frozen() -> impl Iterator<Item = Rule> {
    let stays = FROZEN.iter().map(|field| {
        let began = began("oldSelf", BEGAN);
        keeps(field, &began, "the installation has begun", "any more")
    });
    let counts = COUNTS.iter().map(|field| {
        let began = began("oldSelf", "['InstallationInProgress']");
        keeps(field, &began, "the installation is under way", "before its end")
    });
    stays.chain(counts)
}

fn keeps((path, empty): &Field, when: &str, why: &str, until: &str) -> Rule {
    let same = same_value(path, empty);
    let message = format!("{why}: spec.{} cannot be changed {until}", path.join("."));
    rule("AgentClusterInstall", &[], format!("!{when} || {same}"), &message)
}

fn began(who: &str, reasons: &str) -> String {
    format!(
        "(has({who}.status) && has({who}.status.conditions) && {who}.status.conditions.exists(c, \
         c.type == 'Completed' && has(c.reason) && c.reason in {reasons}))"
    )
}

fn agent_classification() -> Vec<Rule> {
    let name = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
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
            format!("self == '' || self.matches('^{name}$')"),
            "labelValue must be a legal value of a label: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
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
        format!("({} ? {whole} : {empty})", there.join(" && "))
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
