//! Rotation: when keys are fetched, and how long they are trusted.

use super::*;
use crate::jws::Algorithm;
use jiff::SignedDuration;
use proptest::prelude::*;

fn rotation() -> Rotation {
    Rotation {
        at_most_every: SignedDuration::from_secs(30),
        refresh_every: SignedDuration::from_secs(1000),
        keep_removed_for: SignedDuration::from_secs(100),
        trust_for: SignedDuration::from_secs(5000),
    }
}

fn kids(keys: &Keys, now: i64) -> Vec<String> {
    let found =
        [Algorithm::Rs256, Algorithm::Es256].map(|algorithm| keys.candidates(None, algorithm, at(now)));
    found.iter().flatten().filter_map(|key| key.kid.clone()).collect()
}

#[test]
fn keys_are_fetched_at_once_then_now_and_then() {
    let mut keys = Keys::new(rotation());
    assert!(!keys.are_trusted(at(0)));
    assert_eq!(keys.due(at(0)), Fetch::Now);
    keys.begin(at(0));
    // Whoever asks while the fetch is under way, and an issuer that failed, cause no second one.
    assert_eq!(keys.due(at(1)), Fetch::NotBefore(at(30)));
    assert_eq!(keys.due(at(30)), Fetch::Now);
    keys.begin(at(30));
    keys.arrived(jwks(&[rsa_jwk("a")]), at(31));
    assert!(keys.are_trusted(at(31)));
    assert_eq!(keys.due(at(100)), Fetch::NotBefore(at(1031)));
    assert_eq!(keys.due(at(1031)), Fetch::Now);
}

#[test]
fn a_flood_of_unknown_keys_causes_few_fetches() {
    let mut keys = Keys::new(rotation());
    let mut fetches = 0;
    for now in 0..300 {
        if keys.missed(at(now)) == Fetch::Now {
            keys.begin(at(now));
            keys.arrived(jwks(&[rsa_jwk("a")]), at(now));
            fetches += 1;
        }
    }
    assert_eq!(fetches, 10);
}

#[test]
fn a_removed_key_is_kept_for_the_grace_and_no_longer() {
    let new = SigningKey::generate().unwrap();
    let mut keys = Keys::new(rotation());
    keys.arrived(jwks(&[rsa_jwk("old")]), at(0));
    keys.arrived(jwks(&[ec_jwk(&new, "new")]), at(50));
    assert_eq!(kids(&keys, 149), ["old", "new"]);
    assert_eq!(kids(&keys, 150), ["new"]);
    // The grace counts from when it was gone, not from the last fetch.
    keys.arrived(jwks(&[ec_jwk(&new, "new")]), at(120));
    assert_eq!(kids(&keys, 150), ["new"]);
    keys.arrived(jwks(&[rsa_jwk("old"), ec_jwk(&new, "new")]), at(160));
    assert_eq!(kids(&keys, 10_000), ["old", "new"]);
}

#[test]
fn a_key_under_a_name_that_was_used_before_is_another_key() {
    let (one, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let mut keys = Keys::new(rotation());
    keys.arrived(jwks(&[ec_jwk(&one, "k")]), at(0));
    keys.arrived(jwks(&[ec_jwk(&other, "k")]), at(10));
    assert_eq!(keys.candidates(Some("k"), Algorithm::Es256, at(20)).len(), 2);
    assert_eq!(keys.candidates(Some("k"), Algorithm::Rs256, at(20)).len(), 0);
    let left = keys.candidates(Some("k"), Algorithm::Es256, at(110));
    assert_eq!(
        left.iter().map(|key| key.thumbprint()).collect::<Vec<_>>(),
        [other.id().clone()]
    );
}

#[test]
fn keys_of_an_issuer_that_is_away_are_trusted_for_a_time() {
    let mut keys = Keys::new(rotation());
    keys.arrived(jwks(&[rsa_jwk("a")]), at(0));
    assert!(keys.are_trusted(at(4999)) && !keys.are_trusted(at(5000)));
    keys.begin(at(5000));
    keys.arrived(jwks(&[rsa_jwk("a")]), at(5001));
    assert!(keys.are_trusted(at(5002)));
}

#[derive(Debug, Clone)]
enum Step {
    Miss,
    Arrive(Vec<usize>),
    Pass(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Miss),
        proptest::collection::vec(0_usize..3, 1..3).prop_map(Step::Arrive),
        (0_i64..80).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the issuer shows and whoever asks: fetches keep their distance, what is shown now verifies, and what has been
    /// gone for the grace does not.
    #[test]
    fn laws_of_rotation(steps in steps()) {
        let made: Vec<_> = (0..3).map(|_| SigningKey::generate().unwrap()).collect();
        let shown = |which: &[usize]| which.iter().map(|n| ec_jwk(&made[*n], &n.to_string())).collect::<Vec<_>>();
        let mut keys = Keys::new(rotation());
        let (mut now, mut current) = (0, Vec::new());
        let mut last_fetch: Option<i64> = None;
        let mut seen: [Option<i64>; 3] = [None; 3];
        for step in steps {
            match step {
                Step::Pass(seconds) => now += seconds,
                Step::Arrive(which) => {
                    keys.arrived(jwks(&shown(&which)), at(now));
                    current = which;
                }
                Step::Miss => {
                    if keys.missed(at(now)) == Fetch::Now {
                        prop_assert!(last_fetch.is_none_or(|last| now - last >= 30));
                        last_fetch = Some(now);
                        keys.begin(at(now));
                    }
                }
            }
            for n in &current {
                seen[*n] = Some(now);
            }
            let usable = kids(&keys, now);
            for (n, seen) in seen.iter().enumerate() {
                let is_usable = usable.contains(&n.to_string());
                if current.contains(&n) {
                    prop_assert!(is_usable, "{n} is shown");
                }
                if seen.is_none_or(|seen| now - seen > 100 + 80) {
                    prop_assert!(!is_usable, "{n} is gone");
                }
            }
        }
    }
}
