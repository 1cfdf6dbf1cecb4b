//! Tokens of every kind, the reference's among them; every byte of one matters, and each bad one gets its reason.

use super::*;
use crate::Misspelled;
use crate::bad_token::Part;
use crate::claims::{AgentClaims, ClusterClaims, HostClaims, Life, UserClaims};
use crate::image::ImageKey;
use crate::key::SigningKey;
use crate::strict_json::Fault;
use muster_vocabulary::{AccessRole, ClusterId, Generation, HostId, HostKey, InfraEnvId};
use proptest::prelude::*;
use std::collections::BTreeSet;
use uuid::Uuid;

const NOW: i64 = 1_800_000_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn id(last: u8) -> Uuid {
    Uuid::from_bytes([last; 16])
}

fn keys() -> KeySet {
    KeySet::new(SigningKey::generate().unwrap())
}

fn life() -> Life {
    Life::between(at(NOW - 60), at(NOW + 60))
}

fn one_of_each() -> [Claims; 4] {
    [
        Claims::Agent(AgentClaims {
            infra_env: InfraEnvId(id(1)),
            generation: Generation(3),
            life: Life::default(),
        }),
        Claims::Host(HostClaims {
            host: HostKey {
                infra_env: InfraEnvId(id(1)),
                host: HostId(id(2)),
            },
            generation: Generation::FIRST,
            serial: 7,
            life: life(),
        }),
        Claims::Cluster(ClusterClaims {
            cluster: ClusterId(id(3)),
            generation: Generation(1),
            life: life(),
        }),
        Claims::User(UserClaims {
            id: id(4),
            user: "ann".into(),
            org: "acme".into(),
            roles: BTreeSet::from([AccessRole::InfraAdmin, AccessRole::ReadOnly]),
            issued_at: at(NOW - 60),
            expires_at: at(NOW + 60),
        }),
    ]
}

/// A token with these texts as header and claims, signed as it should be.
fn signed(keys: &KeySet, header: &str, claims: &str) -> String {
    let text = format!("{}.{}", base64url::encode(header), base64url::encode(claims));
    let signature = keys.signer().unwrap().sign(text.as_bytes()).unwrap();
    format!("{text}.{}", base64url::encode(signature))
}

const HEADER: &str = r#"{"alg":"ES256","typ":"JWT"}"#;

fn infra_env() -> String {
    format!(r#"{{"infra_env_id":"{}"}}"#, id(1))
}

#[test]
fn every_kind_of_token_says_what_was_put_into_it() {
    let keys = keys();
    for claims in one_of_each() {
        let token = issue(&keys, &claims).unwrap();
        let verified = verify(&keys, &token, at(NOW)).unwrap();
        assert_eq!(verified.claims, claims);
        assert_eq!(&verified.key, keys.signer().unwrap().id());
        assert!(token.len() < 700, "{} characters", token.len());
    }
}

#[test]
fn tokens_of_the_reference_are_understood() {
    let keys = keys();
    let agent = |life| {
        Claims::Agent(AgentClaims {
            infra_env: InfraEnvId(id(1)),
            generation: Generation::FIRST,
            life,
        })
    };
    let bare = verify(&keys, &signed(&keys, HEADER, &infra_env()), at(NOW)).unwrap();
    assert_eq!(bare.claims, agent(Life::default()));
    let limited = format!(
        r#"{{"exp":{},"iat":{},"infra_env_id":"{}"}}"#,
        NOW + 60,
        NOW - 60,
        id(1)
    );
    let limited = signed(&keys, HEADER, &limited);
    assert_eq!(verify(&keys, &limited, at(NOW)).unwrap().claims, agent(life()));
    assert_eq!(verify(&keys, &limited, at(NOW + 100)), Err(BadToken::Expired));
    let cluster = format!(r#"{{"cluster_id":"{}"}}"#, id(3));
    let cluster = verify(&keys, &signed(&keys, HEADER, &cluster), at(NOW)).unwrap();
    assert!(matches!(cluster.claims, Claims::Cluster(ClusterClaims { cluster, .. }) if cluster.0 == id(3)));
}

#[test]
fn a_token_is_verified_by_the_key_it_names_or_by_any() {
    let mut keys = keys();
    let old = issue(&keys, &one_of_each()[0]).unwrap();
    let nameless = signed(&keys, HEADER, &infra_env());
    keys.rotate(SigningKey::generate().unwrap(), Some(at(NOW + 10)))
        .unwrap();
    for token in [&old, &nameless, &issue(&keys, &one_of_each()[0]).unwrap()] {
        assert!(verify(&keys, token, at(NOW)).is_ok());
    }
    let late = verify(&keys, &old, at(NOW + 10));
    assert!(matches!(late, Err(BadToken::UnknownKey(_))), "{late:?}");
    assert_eq!(verify(&keys, &nameless, at(NOW + 10)), Err(BadToken::Signature));
    let names_another = format!(r#"{{"alg":"ES256","kid":"{}"}}"#, keys.kept()[0].key.id());
    assert_eq!(
        verify(&keys, &signed(&keys, &names_another, &infra_env()), at(NOW)),
        Err(BadToken::Signature)
    );
}

#[test]
fn clocks_may_differ_a_little() {
    let keys = keys();
    let token = issue(&keys, &one_of_each()[3]).unwrap();
    for (now, wanted) in [
        (NOW - 91, Some(BadToken::FromTheFuture)),
        (NOW - 90, None),
        (NOW + 89, None),
        (NOW + 90, Some(BadToken::Expired)),
    ] {
        assert_eq!(verify(&keys, &token, at(now)).err(), wanted, "{now}");
    }
}

#[test]
fn every_changed_byte_makes_a_token_worthless() {
    let keys = keys();
    let token = issue(&keys, &one_of_each()[3]).unwrap();
    for place in 0..token.len() {
        for other in [
            b'A', b'B', b'Q', b'g', b'w', b'_', b'-', b'.', b'=', b' ', b'\n', 0, 0x7f,
        ] {
            let mut changed = token.clone().into_bytes();
            if changed[place] == other {
                continue;
            }
            changed[place] = other;
            let changed = String::from_utf8(changed).unwrap();
            assert!(verify(&keys, &changed, at(NOW)).is_err(), "{place}: {other}");
        }
        let mut shorter = token.clone();
        shorter.remove(place);
        assert!(verify(&keys, &shorter, at(NOW)).is_err(), "{place} is missing");
        let mut longer = token.clone();
        longer.insert(place, 'A');
        assert!(
            verify(&keys, &longer, at(NOW)).is_err(),
            "one more before {place}"
        );
        assert!(
            verify(&keys, &token[..place], at(NOW)).is_err(),
            "{place} characters"
        );
    }
}

/// The header and claims of tokens that are signed as they should be, and why they are refused all the same.
#[test]
fn what_is_signed_and_still_wrong() {
    let keys = keys();
    let one = id(1);
    let json = |part, how| BadToken::Json { part, how };
    let twice = |name| Fault::Twice(Told::new(name));
    let algorithm = |told| BadToken::Algorithm {
        told: Told::new(told),
        needed: "ES256",
    };
    let member = |name| BadToken::HeaderMember(Told::new(name));
    let headers = [
        (r#"{"alg":"none"}"#, algorithm("none")),
        (r#"{"alg":"None"}"#, algorithm("None")),
        (r#"{"alg":"HS256"}"#, algorithm("HS256")),
        (r#"{"alg":"RS256"}"#, algorithm("RS256")),
        (r#"{"alg":"ES384"}"#, algorithm("ES384")),
        (r#"{"alg":"es256"}"#, algorithm("es256")),
        (r#"{"alg":""}"#, BadToken::NoAlgorithm),
        (r#"{"typ":"JWT"}"#, BadToken::NoAlgorithm),
        (r#"{"alg":1}"#, member("alg")),
        (r#"{"alg":["ES256"]}"#, member("alg")),
        (
            r#"{"alg":"ES256","alg":"ES256"}"#,
            json(Part::Header, twice("alg")),
        ),
        (
            r#"{"alg":"ES256","kid":"a","kid":"b"}"#,
            json(Part::Header, twice("kid")),
        ),
        (r#"{"alg":"ES256","crit":["exp"]}"#, BadToken::Critical),
        (r#"{"alg":"ES256","crit":[]}"#, BadToken::Critical),
        (r#"{"alg":"ES256","b64":false}"#, member("b64")),
        (r#"{"alg":"ES256","zip":"DEF"}"#, member("zip")),
        (r#"{"alg":"ES256","jwk":{}}"#, member("jwk")),
        (r#"{"alg":"ES256","jku":"https://example.com"}"#, member("jku")),
        (r#"{"alg":"ES256","kid":7}"#, member("kid")),
        (r#"{"alg":"ES256","kid":""}"#, BadToken::UnknownKey(Told::new(""))),
        (
            r#"{"alg":"ES256","kid":"../../etc"}"#,
            BadToken::UnknownKey(Told::new("../../etc")),
        ),
        (r#"{"alg":"ES256","typ":"JWE"}"#, BadToken::Type(Told::new("JWE"))),
        (r#"{"alg":"ES256"} "x""#, json(Part::Header, Fault::Syntax)),
        (r#"["ES256"]"#, json(Part::Header, Fault::NotAnObject)),
        ("", json(Part::Header, Fault::Syntax)),
    ];
    for (header, wanted) in headers {
        let refused = verify(&keys, &signed(&keys, header, &infra_env()), at(NOW));
        assert_eq!(refused, Err(wanted), "{header}");
    }
    let claim = BadToken::claim;
    let both = format!(r#"{{"infra_env_id":"{one}","cluster_id":"{one}"}}"#);
    let of = |rest: &str| format!(r#"{{"infra_env_id":"{one}"{rest}}}"#);
    let user = |rest: &str| format!(r#"{{"scope":"user"{rest}}}"#);
    let sub = |rest: &str| user(&format!(r#","jti":"{one}"{rest}"#));
    let dated = r#","roles":[],"iat":1,"exp":9000000000"#;
    let unexpected = |name| BadToken::Unexpected(Told::new(name));
    let table = [
        ("{}".to_owned(), BadToken::Missing("infra_env_id")),
        (both, BadToken::TwoObjects),
        (
            r#"{"infra_env_id":"x"}"#.into(),
            claim("infra_env_id", "is no UUID"),
        ),
        (
            r#"{"infra_env_id":7}"#.into(),
            claim("infra_env_id", "is no text"),
        ),
        (
            format!(r#"{{"infra_env_id":"{}"}}"#, one.simple()),
            claim("infra_env_id", "is no UUID"),
        ),
        (
            of(r#","infra_env_id":"x""#),
            json(Part::Claims, twice("infra_env_id")),
        ),
        (of(r#","admin":true"#), unexpected("admin")),
        (of(r#","host_id":"x""#), unexpected("host_id")),
        (of(r#","generation":1"#), unexpected("generation")),
        (of(r#","nbf":1"#), unexpected("nbf")),
        (of(r#","exp":"soon""#), claim("exp", "is no time")),
        (of(r#","exp":-1"#), claim("exp", "is no time")),
        (of(r#","exp":1e300"#), claim("exp", "is no time")),
        (of(r#","exp":null"#), claim("exp", "is no time")),
        (of(r#","exp":1"#), BadToken::Expired),
        (of(r#","iat":9000000000"#), BadToken::FromTheFuture),
        (of(r#","scope":"root""#), claim("scope", "is not known")),
        (of(r#","scope":null"#), claim("scope", "is no text")),
        (of(r#","scope":"host""#), BadToken::Missing("host_id")),
        (
            of(&format!(r#","scope":"host","host_id":"{one}""#)),
            BadToken::Missing("serial"),
        ),
        (of(r#","scope":"cluster""#), BadToken::Missing("cluster_id")),
        (
            of(r#","scope":"agent","generation":-1"#),
            claim("generation", "is no number that counts"),
        ),
        (
            of(r#","scope":"agent","generation":4294967296"#),
            claim("generation", "is no number that counts"),
        ),
        (of(r#","scope":"agent","serial":1"#), unexpected("serial")),
        (user(""), BadToken::Missing("jti")),
        (sub(""), BadToken::Missing("sub")),
        (sub(&format!(r#","sub":""{dated}"#)), BadToken::Missing("sub")),
        (sub(r#","sub":"a\n""#), claim("sub", "holds control characters")),
        (
            sub(&format!(r#","sub":"{}""#, "a".repeat(257))),
            claim("sub", "is longer than 256 characters"),
        ),
        (sub(r#","sub":"ann""#), BadToken::Missing("roles")),
        (
            sub(r#","sub":"ann","roles":"admin""#),
            claim("roles", "is not a list of roles"),
        ),
        (
            sub(r#","sub":"ann","roles":["root"]"#),
            claim("roles", "is not a list of roles"),
        ),
        (sub(r#","sub":"ann","roles":[]"#), BadToken::Missing("iat")),
        (
            sub(r#","sub":"ann","roles":[],"iat":1"#),
            BadToken::Missing("exp"),
        ),
        (
            sub(&format!(r#","sub":"ann","infra_env_id":"{one}"{dated}"#)),
            unexpected("infra_env_id"),
        ),
        (format!("{}{{}}", infra_env()), json(Part::Claims, Fault::Syntax)),
    ];
    for (claims, wanted) in table {
        assert_eq!(
            verify(&keys, &signed(&keys, HEADER, &claims), at(NOW)),
            Err(wanted),
            "{claims}"
        );
    }
}

#[test]
fn what_is_not_signed_by_one_of_our_keys() {
    let keys = keys();
    let (header, claims) = (base64url::encode(HEADER), base64url::encode(infra_env()));
    let good = signed(&keys, HEADER, &infra_env());
    let signature = good.rsplit('.').next().unwrap();
    let none = base64url::encode(r#"{"alg":"none"}"#);
    // The public key as the secret of an HMAC.
    let symmetric = format!("{}.{claims}", base64url::encode(r#"{"alg":"HS256"}"#));
    let secret = ImageKey::new(&keys.signer().unwrap().public().to_pem()).unwrap();
    let confused = crate::image::issue(&secret, InfraEnvId(id(1)), at(NOW + 60));
    let spelling = |part, how| BadToken::Spelling { part, how };
    let algorithm = |told| BadToken::Algorithm {
        told: Told::new(told),
        needed: "ES256",
    };
    let table = [
        (String::new(), BadToken::Empty),
        ("x".repeat(LONGEST + 1), BadToken::TooLong { limit: LONGEST }),
        ("x".into(), BadToken::Parts { parts: 1 }),
        (format!("{header}.{claims}"), BadToken::Parts { parts: 2 }),
        (format!("{good}.x"), BadToken::Parts { parts: 4 }),
        (".".repeat(4000), BadToken::Parts { parts: 4001 }),
        (format!("{none}.{claims}."), algorithm("none")),
        (format!("{symmetric}.{signature}"), algorithm("HS256")),
        (confused, algorithm("HS256")),
        (format!("{header}.{claims}."), BadToken::Signature),
        (
            format!("{header}.{claims}.{}", base64url::encode([0; 64])),
            BadToken::Signature,
        ),
        (
            format!("{header}.{claims}.{}", base64url::encode([0; 63])),
            BadToken::Signature,
        ),
        (
            format!("{header}.{claims}.{}", base64url::encode([1; 72])),
            BadToken::Signature,
        ),
        (format!("{good}="), spelling(Part::Signature, Misspelled::Padding)),
        (
            format!("{good} "),
            spelling(Part::Signature, Misspelled::Alphabet),
        ),
        (
            format!("{good}\n"),
            spelling(Part::Signature, Misspelled::Alphabet),
        ),
        (format!(" {good}"), spelling(Part::Header, Misspelled::Alphabet)),
        (
            format!("Bearer {good}"),
            spelling(Part::Header, Misspelled::Alphabet),
        ),
        (
            format!("{header}=.{claims}.{signature}"),
            spelling(Part::Header, Misspelled::Padding),
        ),
        (signed(&self::keys(), HEADER, &infra_env()), BadToken::Signature),
    ];
    for (token, wanted) in table {
        assert_eq!(verify(&keys, &token, at(NOW)), Err(wanted), "{token:.80}");
    }
    // Another spelling of the same bytes: the last character of a signature has four bits to spare.
    let mut last = good.clone();
    let spare = match last.pop().unwrap() {
        'A' => 'B',
        'Q' => 'R',
        'g' => 'h',
        'w' => 'x',
        other => panic!("{other} is not how 64 bytes end"),
    };
    last.push(spare);
    assert_eq!(
        verify(&keys, &last, at(NOW)),
        Err(spelling(Part::Signature, Misspelled::SpareBits))
    );
}

#[test]
fn a_refusal_never_shows_the_token() {
    let keys = keys();
    let good = signed(&keys, HEADER, &infra_env());
    for place in (0..good.len()).step_by(3) {
        let mut bad = good.clone();
        bad.replace_range(place..=place, "!");
        let error = verify(&keys, &bad, at(NOW)).unwrap_err();
        let text = format!("{error} {error:?} {}", error.word());
        assert!(!good.split('.').any(|part| text.contains(part)), "{text}");
        assert!(text.len() < 300, "{text}");
    }
}

#[test]
fn claims_that_no_hub_accepts_are_not_issued() {
    let keys = keys();
    let user = |change: fn(&mut UserClaims)| {
        let [.., Claims::User(mut user)] = one_of_each() else {
            panic!("the last of them is a user");
        };
        change(&mut user);
        issue(&keys, &Claims::User(user)).unwrap_err()
    };
    assert_eq!(
        user(|user| user.user.clear()),
        NotIssued::Claims(BadClaims::NoUser)
    );
    assert_eq!(
        user(|user| user.expires_at = user.issued_at),
        NotIssued::Claims(BadClaims::NoLife)
    );
    let name = |whose, why| NotIssued::Claims(BadClaims::Name { whose, why });
    assert_eq!(
        user(|user| user.org = "a\u{1b}".into()),
        name("organisation", "holds control characters")
    );
    assert_eq!(
        user(|user| user.user = "ä".repeat(257)),
        name("user", "is longer than 256 characters")
    );
    let only_public = KeySet::from_pem(&keys.signer().unwrap().public().to_pem()).unwrap();
    assert_eq!(issue(&only_public, &one_of_each()[0]), Err(NotIssued::NoSigner));
}

#[test]
fn the_longest_token_that_is_issued_is_accepted() {
    let keys = keys();
    let user = UserClaims {
        id: id(9),
        user: "ä".repeat(256),
        org: "漢".repeat(256),
        roles: AccessRole::ALL.iter().copied().collect(),
        issued_at: at(NOW),
        expires_at: at(NOW + 60),
    };
    let token = issue(&keys, &Claims::User(user)).unwrap();
    assert!(
        verify(&keys, &token, at(NOW)).is_ok(),
        "{} characters",
        token.len()
    );
}

fn any_life() -> impl Strategy<Value = Life> {
    (
        proptest::option::of(0..NOW),
        proptest::option::of(NOW + 1..NOW * 2),
    )
        .prop_map(|(from, until)| Life {
            issued_at: from.map(at),
            expires_at: until.map(at),
        })
}

fn any_claims() -> impl Strategy<Value = Claims> {
    let ids =
        (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| (Uuid::from_bytes(a), Uuid::from_bytes(b)));
    let names = ("\\PC{1,40}", "\\PC{0,40}");
    let roles = proptest::collection::btree_set(proptest::sample::select(AccessRole::ALL), 0..5);
    (0..4, ids, any::<u32>(), any::<u32>(), any_life(), names, roles).prop_map(
        |(kind, (one, other), generation, serial, life, (user, org), roles)| {
            let generation = Generation(generation);
            match kind {
                0 => Claims::Agent(AgentClaims {
                    infra_env: InfraEnvId(one),
                    generation,
                    life,
                }),
                1 => Claims::Host(HostClaims {
                    host: HostKey {
                        infra_env: InfraEnvId(one),
                        host: HostId(other),
                    },
                    generation,
                    serial,
                    life,
                }),
                2 => Claims::Cluster(ClusterClaims {
                    cluster: ClusterId(one),
                    generation,
                    life,
                }),
                _ => Claims::User(UserClaims {
                    id: one,
                    user,
                    org,
                    roles,
                    issued_at: life.issued_at.unwrap_or_else(|| at(1)),
                    expires_at: life.expires_at.unwrap_or_else(|| at(NOW + 1)),
                }),
            }
        },
    )
}

proptest! {
    #[test]
    fn whatever_is_issued_is_read_back(claims in any_claims()) {
        let keys = keys();
        let token = issue(&keys, &claims).unwrap();
        prop_assert_eq!(verify(&keys, &token, at(NOW)).map(|verified| verified.claims), Ok(claims));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,120}", parts in "[A-Za-z0-9_-]{0,40}[.][A-Za-z0-9_-]{0,40}[.][A-Za-z0-9_-]{0,90}") {
        let keys = keys();
        prop_assert!(verify(&keys, &text, at(NOW)).is_err());
        prop_assert!(verify(&keys, &parts, at(NOW)).is_err());
    }
}
