//! What surrounds an InfraEnv: the cluster of its hosts when that is made anew, and the time sources of the site.

use super::*;

const OLD: Uuid = Uuid::from_u128(9);

fn described_again() -> Snapshot {
    let mut snapshot = snapshot().with(|infra_env| infra_env.spec.cluster_ref = Some(ClusterRef::default()));
    snapshot.cluster = Cluster::Found {
        id: CLUSTER,
        version: "4.18.3".into(),
        installed: false,
    };
    let mut snapshot = snapshot.converged();
    snapshot.row.as_mut().unwrap().view.cluster_id = Some(OLD);
    snapshot
}

#[test]
fn hosts_belong_to_the_new_cluster_of_a_deployment_that_was_made_again() {
    let snapshot = described_again();
    assert_eq!(plan(&snapshot), Plan::of(vec![Step::Join(CLUSTER)], Then::Again));
    let converged = snapshot.converged();
    assert_eq!(converged.row.as_ref().unwrap().view.cluster_id, Some(CLUSTER));
    assert_eq!(said(&converged).1, reason::AVAILABLE);
}

#[test]
fn as_long_as_the_old_cluster_is_there_the_image_is_not_offered_and_the_condition_says_why() {
    let mut snapshot = described_again();
    snapshot.held_by = Some(OLD);
    assert_eq!(
        plan(&snapshot).then,
        Then::After(SOON),
        "nobody tells when it goes"
    );
    let (status, reason, message) = said(&snapshot);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("Unknown", reason::MISSING_CLUSTER)
    );
    assert!(message.contains(&OLD.to_string()), "{message}");
    plan(&snapshot)
        .steps
        .into_iter()
        .for_each(|step| snapshot.carry_out(step));
    assert_eq!(snapshot.status().iso_download_url, "");
    assert_eq!(plan(&snapshot).steps, [], "said once");
}

#[test]
fn one_that_names_no_time_source_has_that_of_the_site_and_is_left_alone() {
    let mut fresh = snapshot();
    fresh.default_ntp = "ntp.site".into();
    assert_eq!(
        created(&fresh).additional_ntp_sources.as_deref(),
        Some("ntp.site")
    );
    let mut converged = fresh.converged();
    assert_eq!(
        plan(&converged).steps,
        [],
        "the hub's own choice is no difference"
    );
    converged.default_ntp = "ntp.other".into();
    let update = updated(&converged);
    assert_eq!(
        update.additional_ntp_sources.as_deref(),
        Some("ntp.other"),
        "the site moved"
    );
}

#[test]
fn own_time_sources_win_and_leave_room_for_the_sites_when_they_go() {
    let mut own = snapshot().with(|infra_env| infra_env.spec.ntp_sources = vec!["mine".into()]);
    own.default_ntp = "ntp.site".into();
    let desired = created(&own);
    assert_eq!(
        (
            desired.additional_ntp_sources.as_deref(),
            desired.ntp_sources.as_deref()
        ),
        (Some(""), Some("mine"))
    );
    let without = own
        .converged()
        .with(|infra_env| infra_env.spec.ntp_sources.clear());
    let update = updated(&without);
    assert_eq!(
        (
            update.additional_ntp_sources.as_deref(),
            update.ntp_sources.as_deref()
        ),
        (Some("ntp.site"), Some(""))
    );
}
