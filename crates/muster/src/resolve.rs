//! Finds the object a person means: by id, by the beginning of its id, or by name.

use crate::exit::{Failure, Kind, Outcome};
use muster_contract::client::HubClient;
use muster_contract::v1::host::{HostSummary, HostsQuery};
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::cluster_request::ClustersQuery;
use muster_contract::v2::infra_env::{InfraEnvView, InfraEnvsQuery};
use uuid::Uuid;

/// Shorter beginnings of ids are too easily typed by mistake.
const SHORTEST_PREFIX: usize = 4;
/// The most the hub gives at once is enough; fewer round trips for large fleets.
const PAGE: u32 = 1000;
/// More than this do not help to choose.
const CANDIDATES_SHOWN: usize = 8;

/// Something that may be meant.
struct Candidate {
    id: Uuid,
    name: String,
    /// How to name it and nothing else.
    exact: String,
}

/// An id is used as it is; whatever else is looked up.
pub async fn cluster(hub: &HubClient, wanted: &str) -> Outcome<ClusterView> {
    if let Ok(id) = full_id(wanted) {
        return Ok(hub.cluster(id).await?);
    }
    let clusters = hub.clusters(&ClustersQuery::default()).await?;
    let candidates: Vec<Candidate> = clusters
        .iter()
        .map(|c| Candidate {
            id: c.id,
            name: c.name.clone(),
            exact: c.id.to_string(),
        })
        .collect();
    let at = pick("cluster", wanted, &candidates)?;
    Ok(hub.cluster(clusters[at].id).await?)
}

pub async fn infra_env(hub: &HubClient, wanted: &str) -> Outcome<InfraEnvView> {
    if let Ok(id) = full_id(wanted) {
        return Ok(hub.infra_env(id).await?);
    }
    let mut infra_envs = hub.infra_envs(&InfraEnvsQuery::default()).await?;
    let candidates: Vec<Candidate> = infra_envs
        .iter()
        .map(|e| Candidate {
            id: e.id,
            name: e.name.clone(),
            exact: e.id.to_string(),
        })
        .collect();
    let at = pick("infra-env", wanted, &candidates)?;
    Ok(infra_envs.swap_remove(at))
}

/// A host; `INFRA-ENV/HOST` tells two apart that are one machine booted from two images.
pub async fn host(hub: &HubClient, wanted: &str) -> Outcome<HostSummary> {
    let (within, wanted) = match wanted.rsplit_once('/') {
        Some(("host", rest)) => (None, rest),
        Some((infra_env, rest)) => (Some(self::infra_env(hub, infra_env).await?.id), rest),
        None => (None, wanted),
    };
    let mut hosts = hosts(
        hub,
        HostsQuery {
            infra_env_id: within,
            // Ids are looked up with and without their dashes; the hub knows them with.
            named: Some(full_id(wanted).map_or_else(|_| wanted.to_owned(), |id| id.to_string())),
            ..HostsQuery::default()
        },
    )
    .await?;
    let candidates: Vec<Candidate> = hosts
        .iter()
        .map(|h| Candidate {
            id: h.id,
            name: h.name.clone(),
            exact: format!("{}/{}", h.infra_env_id, h.id),
        })
        .collect();
    let at = pick("host", wanted, &candidates)?;
    Ok(hosts.swap_remove(at))
}

/// All hosts that a query selects, page after page.
pub async fn hosts(hub: &HubClient, mut query: HostsQuery) -> Outcome<Vec<HostSummary>> {
    let mut hosts = Vec::new();
    query.limit = Some(PAGE);
    loop {
        let page = hub.host_page(&query).await?;
        hosts.extend(page.hosts);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(hosts),
        }
    }
}

fn full_id(text: &str) -> Result<Uuid, uuid::Error> {
    text.parse()
}

/// An id beats a name, a name beats the beginning of an id.
fn pick(kind: &str, wanted: &str, candidates: &[Candidate]) -> Outcome<usize> {
    let id = full_id(wanted).ok();
    let prefix = wanted.to_ascii_lowercase();
    let rules: [&dyn Fn(&Candidate) -> bool; 3] = [&|c| id == Some(c.id), &|c| c.name == wanted, &|c| {
        prefix.len() >= SHORTEST_PREFIX
            && (c.id.to_string().starts_with(&prefix) || c.id.simple().to_string().starts_with(&prefix))
    }];
    for rule in rules {
        let found: Vec<usize> = (0..candidates.len()).filter(|&i| rule(&candidates[i])).collect();
        match found[..] {
            [] => continue,
            [one] => return Ok(one),
            [..] => return Err(ambiguous(kind, wanted, &found, candidates)),
        }
    }
    let list = format!("list them with `muster {kind} list`");
    Err(Failure::new(Kind::NotFound, format!("there is no {kind} `{wanted}`")).next(list))
}

fn ambiguous(kind: &str, wanted: &str, found: &[usize], candidates: &[Candidate]) -> Failure {
    let more = found.len().saturating_sub(CANDIDATES_SHOWN);
    let mut shown: Vec<String> = found
        .iter()
        .take(CANDIDATES_SHOWN)
        .map(|&i| format!("{} ({})", candidates[i].exact, candidates[i].name))
        .collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    Failure::usage(format!(
        "`{wanted}` names {} {kind}s: {}",
        found.len(),
        shown.join(", ")
    ))
    .next("use one of these ids")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<Candidate> {
        [
            ("abcd0000-0000-4000-8000-000000000001", "demo"),
            ("abcd1111-0000-4000-8000-000000000002", "demo"),
            ("ffff0000-0000-4000-8000-000000000003", "abcd0"),
        ]
        .map(|(id, name)| Candidate {
            id: id.parse().unwrap(),
            name: name.into(),
            exact: id.into(),
        })
        .into()
    }

    #[test]
    fn an_id_a_unique_beginning_or_a_unique_name_is_enough() {
        let all = candidates();
        assert_eq!(pick("host", "abcd0000-0000-4000-8000-000000000001", &all), Ok(0));
        assert_eq!(pick("host", "ABCD1", &all), Ok(1));
        assert_eq!(
            pick("host", "abcd0", &all),
            Ok(2),
            "a name beats the beginning of an id"
        );
    }

    #[test]
    fn an_ambiguous_name_lists_the_candidates() {
        let failure = pick("host", "demo", &candidates()).unwrap_err();
        assert_eq!(failure.kind, Kind::Usage);
        assert!(
            failure.cause.contains("abcd0000-") && failure.cause.contains("abcd1111-"),
            "{failure}"
        );
    }

    #[test]
    fn a_beginning_of_three_letters_is_not_taken_for_an_id() {
        assert_eq!(
            pick("host", "fff", &candidates()).unwrap_err().kind,
            Kind::NotFound
        );
    }
}
