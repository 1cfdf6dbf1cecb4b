//! Faults are read as they are written, and hit the hosts they name.

use super::*;

fn fault(text: &str) -> Fault {
    text.parse().unwrap()
}

#[test]
fn faults_are_read_from_text() {
    let slow = Fault {
        kind: FaultKind::SlowReplies { by_ms: 30_000 },
        victims: Victims::Share(0.1),
    };
    assert_eq!(fault("slow-replies:10%:30s"), slow);
    assert_eq!(fault("dup-uuid:2").victims, Victims::First(2));
    assert_eq!(
        fault("silent:#7:2m:1h").kind,
        FaultKind::Silent {
            after_ms: 120_000,
            for_ms: Some(3_600_000)
        }
    );
    let stage = Stage::Writing;
    assert_eq!(
        fault("reboot:1:writing-image-to-disk").kind,
        FaultKind::RebootAtStage { stage }
    );
    assert_eq!(
        fault("power-off:#1:writing-image-to-disk:10m").kind,
        FaultKind::PowerOff {
            when: When::Stage(stage),
            for_ms: Some(600_000)
        }
    );
    assert_eq!(
        fault("cut-off:100%:5m:30m").kind,
        FaultKind::CutOff {
            when: When::After(300_000),
            for_ms: Some(1_800_000)
        }
    );
    let rebooting = Stage::Rebooting;
    assert_eq!(
        fault("wrong-boot:1").kind,
        FaultKind::RebootAtStage { stage: rebooting }
    );
    assert_eq!(fault("install-exit:1").kind, FaultKind::InstallExit { code: 1 });
    assert_eq!(
        fault("image-failure:1:2").kind,
        FaultKind::ImageFailure { times: 2 }
    );
    assert_eq!(fault("shrinking-disk:1").kind, FaultKind::ShrinkingDisk);
    assert_eq!(
        fault("clock-skew:5%:-5m").kind,
        FaultKind::ClockSkew { ms: -300_000 }
    );
}

#[test]
fn nonsense_is_refused_with_a_reason() {
    for text in [
        "",
        "silent",
        "silent:x",
        "silent:120%",
        "loud:5%",
        "slow-replies:5%",
        "dup-uuid:2:3",
        "reboot:1:noon",
        "fail:1:5m",
        "power-off:1",
        "wrong-boot:1:now",
        "slow-disk:1:very",
    ] {
        let error = text.parse::<Fault>().unwrap_err();
        assert!(!error.why.is_empty(), "{text}");
    }
}

#[test]
fn a_share_of_the_fleet_suffers() {
    let setup = Setup {
        faults: vec![fault("silent:5%")],
        ..Setup::default()
    };
    let silent = (0..10_000)
        .filter(|index| HostFaults::of(&setup, *index).is_some())
        .count();
    assert!((400..600).contains(&silent), "{silent} of 10,000");
}

#[test]
fn duplicates_come_in_pairs() {
    let setup = Setup {
        first_index: 10,
        faults: vec![fault("dup-uuid:2")],
        ..Setup::default()
    };
    assert_eq!(
        [10, 11, 12, 13].map(|index| board(&setup, index)),
        [10, 10, 12, 13]
    );
}
