//! REST v2: who may what as assisted-service declares it, and tied to objects where it does not look.

use super::{MACHINES, PEOPLE_MACHINES_OR_LINK, PEOPLE_OR_LINK, PEOPLE_OR_MACHINES, machines, people, row};
use crate::access::operation::{Action, Carrier, Machines, Method, Operation};
use Action::{
    ChangeHost, InstallHost, Lend, List, ListHosts, Look, MakeCluster, MakeInfraEnv, ReadCluster,
    ReadClusterSecrets, ReadHistory, ReadHost, ReadHostSecrets, ReadImage, ReadInfraEnv, Report, Return,
    RunHost, WriteCluster, WriteInfraEnv,
};
use Machines::{Itself, ItselfOrCluster, OfCluster, OfInfraEnv, OfWhatIsNamed, Readers, Registering};
use Method::{Delete, Get, Patch, Post, Put};

macro_rules! v2 {
    ($rest:literal) => {
        concat!("/api/assisted-install/v2", $rest)
    };
}

macro_rules! infra_env {
    ($rest:literal) => {
        concat!("/api/assisted-install/v2/infra-envs/{infra_env_id}", $rest)
    };
}

macro_rules! host {
    ($rest:literal) => {
        concat!(
            "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}",
            $rest
        )
    };
}

macro_rules! cluster {
    ($rest:literal) => {
        concat!("/api/assisted-install/v2/clusters/{cluster_id}", $rest)
    };
}

const EVERYWHERE: &[Carrier] = &[
    Carrier::Authorization,
    Carrier::SecretKey,
    Carrier::ApiKey,
    Carrier::ImageToken,
    Carrier::ImageTokenQuery,
];
const INITRD: &[Carrier] = &[Carrier::Authorization, Carrier::ApiKey, Carrier::ImageToken];

pub(super) const TABLE: &[Operation] = &[
    // InfraEnvs and their images.
    people("ListInfraEnvs", Get, v2!("/infra-envs"), List),
    people("RegisterInfraEnv", Post, v2!("/infra-envs"), MakeInfraEnv),
    row(
        "GetInfraEnv",
        Get,
        infra_env!(""),
        ReadInfraEnv,
        Readers,
        EVERYWHERE,
    ),
    people("UpdateInfraEnv", Patch, infra_env!(""), WriteInfraEnv),
    people("DeregisterInfraEnv", Delete, infra_env!(""), WriteInfraEnv),
    people(
        "RegenerateInfraEnvSigningKey",
        Post,
        infra_env!("/regenerate-signing-key"),
        WriteInfraEnv,
    ),
    row(
        "v2DownloadInfraEnvFiles",
        Get,
        infra_env!("/downloads/files"),
        ReadImage,
        Readers,
        EVERYWHERE,
    ),
    people(
        "GetInfraEnvPresignedFileURL",
        Get,
        infra_env!("/downloads/files-presigned"),
        ReadImage,
    ),
    people(
        "GetInfraEnvDownloadURL",
        Get,
        infra_env!("/downloads/image-url"),
        ReadImage,
    ),
    row(
        "DownloadMinimalInitrd",
        Get,
        infra_env!("/downloads/minimal-initrd"),
        ReadImage,
        Readers,
        INITRD,
    ),
    // Hosts.
    row(
        "v2ListHosts",
        Get,
        infra_env!("/hosts"),
        ListHosts,
        OfInfraEnv,
        PEOPLE_OR_MACHINES,
    ),
    machines("v2RegisterHost", Post, infra_env!("/hosts"), Registering),
    people("v2GetHost", Get, host!(""), ReadHost),
    people("v2UpdateHost", Patch, host!(""), ChangeHost),
    people("v2DeregisterHost", Delete, host!(""), RunHost),
    machines("v2GetNextSteps", Get, host!("/instructions"), Itself),
    machines("v2PostStepReply", Post, host!("/instructions"), Itself),
    machines(
        "v2UpdateHostInstallProgress",
        Put,
        host!("/progress"),
        ItselfOrCluster,
    ),
    machines(
        "v2UpdateHostLogsProgress",
        Put,
        host!("/logs-progress"),
        ItselfOrCluster,
    ),
    people("BindHost", Post, host!("/actions/bind"), Lend),
    people("UnbindHost", Post, host!("/actions/unbind"), Return),
    people("v2ResetHost", Post, host!("/actions/reset"), InstallHost),
    people("v2InstallHost", Post, host!("/actions/install"), InstallHost),
    people(
        "v2ResetHostValidation",
        Patch,
        host!("/actions/reset-validation/{validation_id}"),
        ChangeHost,
    ),
    people(
        "v2UpdateHostInstallerArgs",
        Patch,
        host!("/installer-args"),
        ChangeHost,
    ),
    people("v2UpdateHostIgnition", Patch, host!("/ignition"), ChangeHost),
    people("v2GetHostIgnition", Get, host!("/ignition"), ReadHostSecrets),
    row(
        "v2DownloadHostIgnition",
        Get,
        v2!("/infra-env/{infra_env_id}/hosts/{host_id}/downloads/ignition"),
        ReadHostSecrets,
        Itself,
        PEOPLE_OR_MACHINES,
    ),
    // Clusters.
    people("v2ListClusters", Get, v2!("/clusters"), List),
    people("v2RegisterCluster", Post, v2!("/clusters"), MakeCluster),
    people(
        "V2GetClusterDefaultConfig",
        Get,
        v2!("/clusters/default-config"),
        Look,
    ),
    people("v2ImportCluster", Post, v2!("/clusters/import"), MakeCluster),
    row(
        "v2GetCluster",
        Get,
        cluster!(""),
        ReadCluster,
        OfCluster,
        PEOPLE_OR_MACHINES,
    ),
    people("V2UpdateCluster", Patch, cluster!(""), WriteCluster),
    people("v2DeregisterCluster", Delete, cluster!(""), WriteCluster),
    row(
        "ListClusterHosts",
        Get,
        cluster!("/hosts"),
        ReadCluster,
        OfCluster,
        PEOPLE_OR_MACHINES,
    ),
    people(
        "TransformClusterToAddingHosts",
        Post,
        cluster!("/actions/allow-add-hosts"),
        WriteCluster,
    ),
    people(
        "TransformClusterToDay2",
        Post,
        cluster!("/actions/allow-add-workers"),
        WriteCluster,
    ),
    people(
        "v2InstallCluster",
        Post,
        cluster!("/actions/install"),
        WriteCluster,
    ),
    people(
        "V2CancelInstallation",
        Post,
        cluster!("/actions/cancel"),
        WriteCluster,
    ),
    people("v2ResetCluster", Post, cluster!("/actions/reset"), WriteCluster),
    people(
        "v2GetIgnoredValidations",
        Get,
        cluster!("/ignored-validations"),
        ReadCluster,
    ),
    people(
        "v2SetIgnoredValidations",
        Put,
        cluster!("/ignored-validations"),
        WriteCluster,
    ),
    people(
        "v2GetPreflightRequirements",
        Get,
        cluster!("/preflight-requirements"),
        ReadCluster,
    ),
    people(
        "v2GetClusterInstallConfig",
        Get,
        cluster!("/install-config"),
        ReadClusterSecrets,
    ),
    people(
        "v2UpdateClusterInstallConfig",
        Patch,
        cluster!("/install-config"),
        WriteCluster,
    ),
    people("V2ListClusterManifests", Get, cluster!("/manifests"), ReadCluster),
    people(
        "V2CreateClusterManifest",
        Post,
        cluster!("/manifests"),
        WriteCluster,
    ),
    people(
        "V2UpdateClusterManifest",
        Patch,
        cluster!("/manifests"),
        WriteCluster,
    ),
    people(
        "V2DeleteClusterManifest",
        Delete,
        cluster!("/manifests"),
        WriteCluster,
    ),
    people(
        "v2DownloadClusterManifest",
        Get,
        cluster!("/manifests/files"),
        ReadClusterSecrets,
    ),
    row(
        "V2DownloadClusterFiles",
        Get,
        cluster!("/downloads/files"),
        ReadClusterSecrets,
        OfCluster,
        PEOPLE_MACHINES_OR_LINK,
    ),
    people(
        "V2GetPresignedForClusterFiles",
        Get,
        cluster!("/downloads/files-presigned"),
        ReadClusterSecrets,
    ),
    people(
        "V2GetCredentials",
        Get,
        cluster!("/credentials"),
        ReadClusterSecrets,
    ),
    row(
        "V2DownloadClusterCredentials",
        Get,
        cluster!("/downloads/credentials"),
        ReadClusterSecrets,
        OfCluster,
        PEOPLE_OR_MACHINES,
    ),
    people(
        "V2GetPresignedForClusterCredentials",
        Get,
        cluster!("/downloads/credentials-presigned"),
        ReadClusterSecrets,
    ),
    people(
        "GetClusterSupportedPlatforms",
        Get,
        cluster!("/supported-platforms"),
        ReadCluster,
    ),
    people(
        "V2GetClusterUISettings",
        Get,
        cluster!("/ui-settings"),
        ReadCluster,
    ),
    people(
        "V2UpdateClusterUISettings",
        Put,
        cluster!("/ui-settings"),
        WriteCluster,
    ),
    // What an installation reports.
    machines(
        "v2UpdateClusterFinalizingProgress",
        Put,
        cluster!("/progress"),
        OfCluster,
    ),
    machines(
        "v2UploadClusterIngressCert",
        Post,
        cluster!("/uploads/ingress-cert"),
        OfCluster,
    ),
    machines(
        "v2CompleteInstallation",
        Post,
        cluster!("/actions/complete-installation"),
        OfCluster,
    ),
    machines(
        "v2ReportMonitoredOperatorStatus",
        Put,
        cluster!("/monitored-operators"),
        OfCluster,
    ),
    row(
        "V2ListOfClusterOperators",
        Get,
        cluster!("/monitored-operators"),
        ReadCluster,
        OfCluster,
        PEOPLE_OR_MACHINES,
    ),
    row(
        "V2DownloadClusterLogs",
        Get,
        cluster!("/logs"),
        ReadCluster,
        OfCluster,
        PEOPLE_OR_LINK,
    ),
    machines("V2UploadLogs", Post, cluster!("/logs"), OfCluster),
    machines(
        "v2UpdateClusterLogsProgress",
        Put,
        cluster!("/logs-progress"),
        OfCluster,
    ),
    row(
        "v2ListEvents",
        Get,
        v2!("/events"),
        ReadHistory,
        OfWhatIsNamed,
        PEOPLE_OR_LINK,
    ),
    row(
        "v2TriggerEvent",
        Post,
        v2!("/events"),
        Report,
        OfWhatIsNamed,
        MACHINES,
    ),
    // The same for everybody.
    people("v2ListComponentVersions", Get, v2!("/component-versions"), Look),
    people(
        "v2ListSupportedOpenshiftVersions",
        Get,
        v2!("/openshift-versions"),
        Look,
    ),
    people(
        "GetSupportedArchitectures",
        Get,
        v2!("/support-levels/architectures"),
        Look,
    ),
    people("GetSupportedFeatures", Get, v2!("/support-levels/features"), Look),
    people("V2ListSupportedOperators", Get, v2!("/supported-operators"), Look),
    people(
        "V2ListOperatorProperties",
        Get,
        v2!("/supported-operators/{operator_name}"),
        Look,
    ),
];

/// The hub says that it does not offer them; the document does not speak of them.
pub(super) const NOT_OFFERED: &[Operation] = &[
    people(
        "v2RegisterDisconnectedCluster",
        Post,
        v2!("/clusters/disconnected"),
        MakeCluster,
    ),
    people("V2ListManagedDomains", Get, v2!("/domains"), Look),
    people("V2ListBundles", Get, v2!("/operators/bundles"), Look),
    people("V2GetBundle", Get, v2!("/operators/bundles/{id}"), Look),
    people("v2ListReleaseSources", Get, v2!("/release-sources"), Look),
    people(
        "GetDetailedSupportedFeatures",
        Get,
        v2!("/support-levels/features/detailed"),
        Look,
    ),
];
