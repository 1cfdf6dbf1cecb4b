//! Tokens of an issuer: those that are accepted, and the reason each of the others gets.

use super::*;
use crate::bad_token::{BadToken, Part};
use crate::jws::Algorithm;
use crate::strict_json::Fault;
use crate::told::Told;
use jiff::SignedDuration;

fn expected() -> Expected {
    Expected {
        issuer: Issuer::new(ISSUER).unwrap(),
        audiences: vec!["muster".into(), "muster-cli".into()],
        leeway: SignedDuration::from_secs(60),
    }
}

fn keys(shown: &[Value]) -> Keys {
    let mut keys = Keys::new(Rotation::default());
    keys.arrived(jwks(shown), at(NOW - 100));
    keys
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": "muster", "exp": NOW + 300, "iat": NOW, "sub": "1", "preferred_username": "ann" })
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn checked(keys: &Keys, token: &str) -> Result<(), BadToken> {
    verify(keys, token, &expected(), at(NOW)).map(drop)
}

#[test]
fn tokens_of_both_algorithms_are_verified() {
    let key = SigningKey::generate().unwrap();
    let keys = keys(&[rsa_jwk("r"), ec_jwk(&key, "e")]);
    let by_ec = |header: Value| signed(&header, &claims(), |text| key.sign(text).unwrap());
    for token in [
        by_rsa(&json!({ "alg": "RS256", "kid": "r", "typ": "JWT" }), &claims()),
        by_rsa(
            &json!({ "alg": "RS256", "kid": "r", "typ": "at+jwt", "x5t": "x" }),
            &claims(),
        ),
        by_rsa(
            &json!({ "alg": "RS256", "kid": "r", "typ": "application/at+JWT" }),
            &claims(),
        ),
        // One key of this algorithm: its name can be missing.
        by_rsa(&json!({ "alg": "RS256" }), &claims()),
        by_ec(json!({ "alg": "ES256", "kid": "e" })),
        by_ec(json!({ "alg": "ES256" })),
    ] {
        let found = verify(&keys, &token, &expected(), at(NOW)).unwrap();
        assert_eq!(found["preferred_username"], "ann");
    }
}

/// RFC 7515, appendix A.2: the signature is right, and everything else a token needs is missing.
#[test]
fn the_signature_of_the_rfc() {
    let modulus = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-\
                   SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-\
                   UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2et\
                   hFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19\
                 yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8\
                 W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7\
                 K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9F\
                 s98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    let mut jwk = rsa_jwk("k");
    jwk["n"] = modulus.into();
    let keys = keys(&[jwk]);
    assert_eq!(checked(&keys, token), Err(BadToken::Issuer(Told::new("joe"))));
    let changed = token.replace("cC4h", "cC4i");
    assert_eq!(checked(&keys, &changed), Err(BadToken::Signature));
}

#[test]
fn each_claim_that_is_wrong_gets_its_reason() {
    let keys = keys(&[rsa_jwk("r")]);
    let without = |name: &str| {
        let mut claims = claims();
        claims.as_object_mut().unwrap().shift_remove(name);
        claims
    };
    let claim = BadToken::claim;
    let other = "https://issuer.example.com/realms/two";
    for (claims, wanted) in [
        (claims(), Ok(())),
        (without("iat"), Ok(())),
        (with("aud", json!(["x", "muster-cli"])), Ok(())),
        (with("exp", json!(NOW - 59)), Ok(())),
        (with("exp", json!(NOW as f64 + 0.5)), Ok(())),
        (with("nbf", json!(NOW + 60)), Ok(())),
        (with("iat", json!(NOW + 60)), Ok(())),
        (without("iss"), Err(BadToken::Missing("iss"))),
        (with("iss", json!(other)), Err(BadToken::Issuer(Told::new(other)))),
        (with("iss", json!([ISSUER])), Err(claim("iss", "is no text"))),
        (without("aud"), Err(BadToken::Missing("aud"))),
        (with("aud", json!("Muster")), Err(BadToken::Audience)),
        (with("aud", json!([])), Err(BadToken::Audience)),
        (with("aud", json!([["muster"]])), Err(BadToken::Audience)),
        (
            with("aud", json!({ "muster": 1 })),
            Err(claim("aud", "is neither text nor list")),
        ),
        (
            with("aud", json!(vec!["muster"; 65])),
            Err(claim("aud", "names more recipients than are looked at")),
        ),
        (without("exp"), Err(BadToken::Missing("exp"))),
        (with("exp", json!("9000000000")), Err(claim("exp", "is no time"))),
        (with("exp", json!(NOW - 60)), Err(BadToken::Expired)),
        (with("nbf", json!(NOW + 61)), Err(BadToken::NotYet)),
        (with("nbf", json!(true)), Err(claim("nbf", "is no time"))),
        (with("iat", json!(NOW + 61)), Err(BadToken::FromTheFuture)),
    ] {
        let token = by_rsa(&json!({ "alg": "RS256", "kid": "r" }), &claims);
        assert_eq!(checked(&keys, &token), wanted, "{claims}");
    }
}

#[test]
fn each_header_that_is_wrong_gets_its_reason() {
    let key = SigningKey::generate().unwrap();
    let keys = keys(&[rsa_jwk("r"), rsa_jwk_of_another(), ec_jwk(&key, "e")]);
    let algorithm = |told| BadToken::Algorithm {
        told: Told::new(told),
        needed: "ES256 or RS256",
    };
    for (header, wanted) in [
        (json!({ "alg": "none" }), algorithm("none")),
        (json!({ "alg": "HS256", "kid": "r" }), algorithm("HS256")),
        (json!({ "alg": "PS256", "kid": "r" }), algorithm("PS256")),
        (json!({ "alg": "RS512", "kid": "r" }), algorithm("RS512")),
        (json!({ "alg": "rs256", "kid": "r" }), algorithm("rs256")),
        (json!({ "kid": "r" }), BadToken::NoAlgorithm),
        (
            json!({ "alg": "RS256", "kid": "x" }),
            BadToken::UnknownKey(Told::new("x")),
        ),
        // The key is there, for another algorithm.
        (
            json!({ "alg": "ES256", "kid": "r" }),
            BadToken::UnknownKey(Told::new("r")),
        ),
        (
            json!({ "alg": "RS256", "kid": "e" }),
            BadToken::UnknownKey(Told::new("e")),
        ),
        (json!({ "alg": "RS256" }), BadToken::KeyNotNamed),
        (json!({ "alg": "RS256", "kid": "other" }), BadToken::Signature),
        (
            json!({ "alg": "RS256", "kid": "r", "crit": ["x"] }),
            BadToken::Critical,
        ),
        (
            json!({ "alg": "RS256", "kid": "r", "b64": false }),
            BadToken::HeaderMember(Told::new("b64")),
        ),
        (
            json!({ "alg": "RS256", "kid": "r", "typ": "logout+jwt" }),
            BadToken::Type(Told::new("logout+jwt")),
        ),
        (
            json!({ "alg": "RS256", "kid": "r", "typ": "dpop+jwt" }),
            BadToken::Type(Told::new("dpop+jwt")),
        ),
        (
            json!({ "alg": "RS256", "kid": "r", "typ": "application/x" }),
            BadToken::Type(Told::new("application/x")),
        ),
    ] {
        assert_eq!(
            checked(&keys, &by_rsa(&header, &claims())),
            Err(wanted),
            "{header}"
        );
    }
    // A key that the token brings along is not looked at.
    let own = SigningKey::generate().unwrap();
    let brought = json!({ "alg": "ES256", "kid": "e", "jwk": ec_jwk(&own, "e") });
    let brought = signed(&brought, &claims(), |text| own.sign(text).unwrap());
    assert_eq!(checked(&keys, &brought), Err(BadToken::Signature));
}

fn rsa_jwk_of_another() -> Value {
    let mut jwk = rsa_jwk("other");
    let mut modulus = modulus(&rsa());
    modulus[100] ^= 0x10;
    jwk["n"] = base64url::encode(modulus).into();
    jwk
}

#[test]
fn every_changed_byte_makes_a_token_worthless() {
    let keys = keys(&[rsa_jwk("r")]);
    let token = by_rsa(&json!({ "alg": "RS256", "kid": "r" }), &claims());
    assert_eq!(checked(&keys, &token), Ok(()));
    for place in 0..token.len() {
        for other in "AQg_.="
            .chars()
            .filter(|other| token[place..=place] != other.to_string())
        {
            let mut changed = token.clone();
            changed.replace_range(place..=place, &other.to_string());
            assert!(checked(&keys, &changed).is_err(), "{place}: {other}");
        }
    }
}

#[test]
fn what_can_be_read_in_two_ways_and_what_is_too_long_is_refused() {
    let key = SigningKey::generate().unwrap();
    let keys = keys(&[ec_jwk(&key, "e")]);
    let text = format!(
        "{}.{}",
        base64url::encode(r#"{"alg":"ES256","kid":"e"}"#),
        base64url::encode(format!(
            r#"{{"iss":"{ISSUER}","aud":"muster","exp":{},"aud":"x"}}"#,
            NOW + 9
        ))
    );
    let token = format!("{text}.{}", base64url::encode(key.sign(text.as_bytes()).unwrap()));
    let wanted = BadToken::Json {
        part: Part::Claims,
        how: Fault::Twice(Told::new("aud")),
    };
    assert_eq!(checked(&keys, &token), Err(wanted));
    let long = "x".repeat(LONGEST_TOKEN + 1);
    assert_eq!(
        checked(&keys, &long),
        Err(BadToken::TooLong { limit: LONGEST_TOKEN })
    );
}

/// A token with a key that is not known yet, from the refusal to the second attempt.
#[test]
fn a_new_key_is_fetched_once_and_then_known() {
    let new = SigningKey::generate().unwrap();
    let mut keys = keys(&[rsa_jwk("r")]);
    let token = signed(&json!({ "alg": "ES256", "kid": "new" }), &claims(), |text| {
        new.sign(text).unwrap()
    });
    assert_eq!(
        checked(&keys, &token),
        Err(BadToken::UnknownKey(Told::new("new")))
    );
    assert_eq!(keys.missed(at(NOW)), Fetch::Now);
    keys.begin(at(NOW));
    assert_ne!(keys.missed(at(NOW)), Fetch::Now);
    keys.arrived(jwks(&[ec_jwk(&new, "new")]), at(NOW));
    assert_eq!(checked(&keys, &token), Ok(()));
    let old = by_rsa(&json!({ "alg": "RS256", "kid": "r" }), &claims());
    assert_eq!(checked(&keys, &old), Ok(()));
    assert_eq!(
        keys.candidates(Some("r"), Algorithm::Rs256, at(NOW + 600)).len(),
        0
    );
}

#[test]
fn keys_that_are_too_old_verify_nothing() {
    let keys = keys(&[rsa_jwk("r")]);
    let mut claims = claims();
    claims["exp"] = json!(NOW * 2);
    let token = by_rsa(&json!({ "alg": "RS256", "kid": "r" }), &claims);
    let day = 24 * 3600;
    assert!(verify(&keys, &token, &expected(), at(NOW - 101 + day)).is_ok());
    assert_eq!(
        verify(&keys, &token, &expected(), at(NOW - 100 + day)),
        Err(BadToken::KeysTooOld)
    );
    assert_eq!(
        checked(&Keys::new(Rotation::default()), &token),
        Err(BadToken::KeysTooOld)
    );
}
