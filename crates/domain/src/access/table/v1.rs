//! Muster's own API.

use super::people;
use crate::access::operation::{Action, Machines, Method, Operation};
use Action::{
    List, Look, Move, Plan, PutCluster, PutInfraEnv, ReadCluster, ReadClusterSecrets, ReadHost, ReadImage,
    ReadInfraEnv, Return, RunHost, Watch, WriteCluster, WriteInfraEnv,
};
use Method::{Delete, Get, Patch, Post, Put};

macro_rules! host {
    ($rest:literal) => {
        concat!("/api/muster/v1/infra-envs/{infra_env_id}/hosts/{host_id}", $rest)
    };
}

macro_rules! infra_env {
    ($rest:literal) => {
        concat!("/api/muster/v1/infra-envs/{infra_env_id}", $rest)
    };
}

macro_rules! cluster {
    ($rest:literal) => {
        concat!("/api/muster/v1/clusters/{cluster_id}", $rest)
    };
}

pub(super) const TABLE: &[Operation] = &[
    people("plan", Post, "/api/muster/v1/plan", Plan),
    people("explainCluster", Get, cluster!("/explain"), ReadCluster),
    people("explainInfraEnv", Get, infra_env!("/explain"), ReadInfraEnv),
    people("explainHost", Get, host!("/explain"), ReadHost),
    people("hostVerdicts", Get, host!("/verdicts"), ReadHost),
    people("listHosts", Get, "/api/muster/v1/hosts", List),
    // The same machine may be a host of several InfraEnvs: a list of those that are seen.
    people("findHost", Get, "/api/muster/v1/hosts/{host_id}", List),
    people("reclaimHost", Post, host!("/actions/reclaim"), Return),
    people("showMove", Get, host!("/move"), ReadHost),
    people("moveHost", Post, host!("/move"), Move),
    people("changeHost", Patch, host!(""), RunHost),
    people("listDownloads", Get, infra_env!("/downloads"), ReadInfraEnv),
    people(
        "uploadedIgnition",
        Get,
        cluster!("/ignition/{role}"),
        ReadClusterSecrets,
    ),
    people("uploadIgnition", Put, cluster!("/ignition/{role}"), WriteCluster),
    people(
        "removeIgnition",
        Delete,
        cluster!("/ignition/{role}"),
        WriteCluster,
    ),
    people("listChanges", Get, "/api/muster/v1/changes", List),
    people("putCluster", Put, cluster!(""), PutCluster),
    people("putImportedCluster", Put, cluster!("/import"), PutCluster),
    people("putInfraEnv", Put, infra_env!(""), PutInfraEnv),
    people("changeInfraEnv", Patch, infra_env!(""), WriteInfraEnv),
    people(
        "deleteInfraEnvWithHosts",
        Delete,
        infra_env!("/with-hosts"),
        WriteInfraEnv,
    ),
    people("clusterLinks", Get, cluster!("/links"), ReadCluster),
    // They lead to the image.
    people("infraEnvLinks", Get, infra_env!("/links"), ReadImage),
    people("releaseOfImage", Get, "/api/muster/v1/releases", Look),
    people("hubStatus", Get, "/api/muster/v1/status", Watch),
    // Certificates that machines need before they can trust anything.
    super::row(
        "trust",
        Get,
        "/api/muster/v1/trust",
        Action::Open,
        Machines::NoOne,
        &[],
    ),
];
