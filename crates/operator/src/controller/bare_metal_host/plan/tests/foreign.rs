//! Machines that were labelled although somebody else has them.

use super::*;

fn consumed(mut host: BareMetalHost) -> BareMetalHost {
    let consumer =
        json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": "worker-0" });
    host.spec.rest.insert("consumerRef".into(), consumer);
    host
}

fn written(mut host: BareMetalHost, format: Option<&str>) -> BareMetalHost {
    host.spec.image = Some(Image {
        url: "http://elsewhere/disk.img".into(),
        format: format.map(Into::into),
        ..Image::default()
    });
    host
}

#[test]
fn a_machine_that_runs_somebody_elses_system_is_left_as_it_is_and_that_is_said() {
    let hosts = [
        (consumed(host("provisioned")), "consumerRef"),
        (consumed(host("available")), "consumerRef"),
        (written(host("provisioned"), None), "spec.image"),
        (written(host("provisioned"), Some("qcow2")), "spec.image"),
        (consumed(written(host("provisioned"), Some("raw"))), "consumerRef"),
    ];
    for boot in [MetalBoot::LiveImage, MetalBoot::Converged] {
        for (host, expected) in &hosts {
            let kept = reconciled(&snapshot(boot, host.clone(), None));
            assert_eq!(*kept.host, converged_metadata(host.clone()), "{boot:?}");
            let texts = mistakes(&plan(&kept));
            assert!(texts.len() == 1 && texts[0].contains(expected), "{texts:?}");
        }
    }
}

#[test]
fn once_nobody_else_has_it_a_machine_is_discovered() {
    let mut free = reconciled(&live(written(host("provisioned"), None), None));
    let mut host = (*free.host).clone();
    host.spec.image = None;
    host.status = Some(status("available", "OK"));
    free.host = Arc::new(host);
    assert_eq!(image_url(&reconciled(&free)), Some(URL));
}

#[test]
fn a_machine_with_an_agent_comes_back_whoever_consumes_it() {
    let lent = detached(consumed(booted_live("provisioned")));
    let begun = reconciled(&live(lent, Some(waiting())));
    assert_eq!(image_url(&begun), None);
    let lent = detached(consumed(deployed("provisioned")));
    let begun = reconciled(&converged(lent, Some(waiting())));
    assert_eq!(method(&begun), None);
    assert!(mistakes(&plan(&begun)).is_empty());
}

#[test]
fn what_manifests_say_beforehand_is_nobody_elses() {
    let preset = reconciled(&live(deployed("available"), None));
    assert_eq!(method(&preset), Some(START));
    assert!(mistakes(&plan(&preset)).is_empty());
    let empty = Image::default();
    let mut blank = host("available");
    blank.spec.image = Some(empty);
    blank.spec.rest.insert("consumerRef".into(), Value::Null);
    assert_eq!(image_url(&reconciled(&live(blank, None))), Some(URL));
    let older = reconciled(&live(written(host("available"), Some("live-iso")), None));
    assert_eq!(image_url(&older), Some(URL));
}
