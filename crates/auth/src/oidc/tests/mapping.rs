//! Users, organisations and roles from claims as issuers write them.

use super::*;
use crate::bad_token::BadToken;
use muster_vocabulary::AccessRole;
use proptest::prelude::*;
use serde_json::Map;
use std::collections::BTreeSet;

fn path(text: &str) -> ClaimPath {
    text.parse().unwrap()
}

fn map(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else {
        panic!("claims are an object");
    };
    map
}

fn keycloak() -> Mapping {
    Mapping {
        user: path("preferred_username"),
        org: Some(path("/https:~1~1example.com~1org")),
        roles: Some(path("realm_access.roles")),
        names: [
            ("ops".to_owned(), AccessRole::InfraAdmin),
            ("dev".to_owned(), AccessRole::ClusterCreator),
        ]
        .into(),
        everybody: BTreeSet::new(),
    }
}

#[test]
fn claims_are_found_where_the_issuer_has_them() {
    let claims = map(json!({
        "preferred_username": "ann",
        "https://example.com/org": ["acme"],
        "realm_access": { "roles": ["offline_access", "ops", "dev", "ops"] },
    }));
    let identity = keycloak().identity(&claims).unwrap();
    assert_eq!((identity.user.as_str(), identity.org.as_str()), ("ann", "acme"));
    assert_eq!(
        identity.roles,
        BTreeSet::from([AccessRole::InfraAdmin, AccessRole::ClusterCreator])
    );
}

#[test]
fn roles_are_a_list_or_a_text_with_spaces() {
    let mapping = Mapping::default();
    for (roles, wanted) in [
        (
            json!("read-only cluster-creator"),
            vec![AccessRole::ClusterCreator, AccessRole::ReadOnly],
        ),
        (json!(["read-only"]), vec![AccessRole::ReadOnly]),
        (json!("Admin ADMIN administrator"), vec![]),
        (json!([]), vec![]),
        (json!(null), vec![]),
    ] {
        let claims = map(json!({ "preferred_username": "ann", "roles": roles }));
        assert_eq!(
            mapping.identity(&claims).unwrap().roles,
            wanted.into_iter().collect()
        );
    }
    let generous = Mapping {
        everybody: BTreeSet::from([AccessRole::ReadOnly]),
        ..mapping
    };
    let claims = map(json!({ "preferred_username": "ann", "roles": "admin" }));
    assert_eq!(
        generous.identity(&claims).unwrap().roles,
        BTreeSet::from([AccessRole::Admin, AccessRole::ReadOnly])
    );
}

#[test]
fn each_claim_that_says_nothing_usable_gets_its_reason() {
    let shape = "is neither text nor list of texts";
    for (claims, name, why) in [
        (json!({}), "preferred_username", "is not there"),
        (
            json!({ "preferred_username": "" }),
            "preferred_username",
            "is not there",
        ),
        (json!({ "preferred_username": 7 }), "preferred_username", shape),
        (
            json!({ "preferred_username": ["a", "b"] }),
            "preferred_username",
            "names several where one is wanted",
        ),
        (json!({ "preferred_username": [7] }), "preferred_username", shape),
        (
            json!({ "preferred_username": "a\u{0}" }),
            "preferred_username",
            "holds control characters",
        ),
        (
            json!({ "preferred_username": "a".repeat(257) }),
            "preferred_username",
            "is longer than 256 characters",
        ),
        (
            json!({ "preferred_username": "a", "org": { "x": 1 } }),
            "org",
            shape,
        ),
        (
            json!({ "preferred_username": "a", "org": ["x", "y"] }),
            "org",
            "names several where one is wanted",
        ),
        (json!({ "preferred_username": "a", "roles": 7 }), "roles", shape),
        (
            json!({ "preferred_username": "a", "roles": ["admin", 7] }),
            "roles",
            shape,
        ),
        (
            json!({ "preferred_username": "a", "roles": vec!["x"; 1025] }),
            "roles",
            "holds more values than are looked at",
        ),
        (
            json!({ "preferred_username": "a", "roles": "x ".repeat(1025) }),
            "roles",
            "holds more values than are looked at",
        ),
    ] {
        let refused = Mapping::default().identity(&map(claims));
        assert_eq!(refused, Err(BadToken::claim(name, why)));
    }
}

#[test]
fn a_path_is_dotted_or_a_pointer() {
    for (text, names) in [
        ("sub", vec!["sub"]),
        ("realm_access.roles", vec!["realm_access", "roles"]),
        ("/a.b/c", vec!["a.b", "c"]),
        ("/https:~1~1x.y~0z", vec!["https://x.y~z"]),
    ] {
        assert_eq!(path(text), ClaimPath::from_names(&names), "{text}");
        assert_eq!(path(text).to_string(), text);
    }
    for bad in [
        "",
        "/",
        ".",
        "a..b",
        "/a/",
        "/a~2",
        "/a~",
        "a.b.c.d.e.f.g.h.i",
        &"x".repeat(257),
    ] {
        assert_eq!(bad.parse::<ClaimPath>(), Err(BadClaimPath), "{bad}");
    }
}

proptest! {
    #[test]
    fn a_path_is_printed_as_it_can_be_read(names in proptest::collection::vec("[a-z./~:]{1,8}", 1..5)) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let path = ClaimPath::from_names(&names);
        prop_assert_eq!(path.to_string().parse::<ClaimPath>(), Ok(path));
    }
}
