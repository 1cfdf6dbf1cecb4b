//! Keys of issuers, good ones and bad ones.

use super::*;
use crate::jws::Algorithm;

#[test]
fn keys_of_both_kinds_are_read_and_others_skipped() {
    let key = SigningKey::generate().unwrap();
    let mut encrypts = rsa_jwk("enc");
    encrypts["use"] = "enc".into();
    let okp = json!({ "kty": "OKP", "crv": "Ed25519", "x": "x" });
    let found = jwks(&[encrypts, rsa_jwk("r"), okp, ec_jwk(&key, "e")]);
    let told: Vec<_> = found
        .keys
        .iter()
        .map(|key| (key.kid.as_deref(), key.algorithm()))
        .collect();
    assert_eq!(
        told,
        [(Some("r"), Algorithm::Rs256), (Some("e"), Algorithm::Es256)]
    );
    assert_eq!(found.keys[1].thumbprint(), *key.id());
    let skipped: Vec<_> = found
        .skipped
        .iter()
        .map(|skipped| (skipped.place, skipped.why))
        .collect();
    assert_eq!(skipped, [(0, Unusable::Use), (2, Unusable::Kind)]);
}

#[test]
fn each_key_that_is_of_no_use_gets_its_reason() {
    let key = SigningKey::generate().unwrap();
    let (ec, rsa) = (ec_jwk(&key, "k"), rsa_jwk("k"));
    let with = |jwk: &Value, name: &str, value: Value| {
        let mut jwk = jwk.clone();
        jwk[name] = value;
        jwk
    };
    let bits = |bytes: usize, first: u8, last: u8| {
        let mut number = vec![0xff; bytes];
        (number[0], number[bytes - 1]) = (first, last);
        with(&rsa, "n", base64url::encode(number).into())
    };
    for (jwk, wanted) in [
        (json!(7), Unusable::Shape),
        (json!({}), Unusable::Shape),
        (json!({ "kty": "oct", "k": "c2VjcmV0" }), Unusable::Kind),
        (with(&ec, "crv", "P-384".into()), Unusable::Kind),
        (with(&ec, "crv", "secp256k1".into()), Unusable::Kind),
        (with(&ec, "d", "x".into()), Unusable::Private),
        (with(&rsa, "d", "x".into()), Unusable::Private),
        (with(&ec, "use", "enc".into()), Unusable::Use),
        (with(&ec, "key_ops", json!(["sign"])), Unusable::Use),
        (with(&ec, "alg", "ES384".into()), Unusable::Algorithm),
        (with(&ec, "alg", "RS256".into()), Unusable::Algorithm),
        (with(&rsa, "alg", "PS256".into()), Unusable::Algorithm),
        (with(&rsa, "alg", "HS256".into()), Unusable::Algorithm),
        (with(&rsa, "kid", "k".repeat(257).into()), Unusable::Name),
        (with(&ec, "x", "AA".into()), Unusable::Part),
        (with(&ec, "x", json!(null)), Unusable::Part),
        (with(&ec, "y", base64url::encode([1; 32]).into()), Unusable::Point),
        (with(&rsa, "n", "==".into()), Unusable::Part),
        (with(&rsa, "n", "".into()), Unusable::Size),
        (bits(128, 0xff, 1), Unusable::Size),
        (bits(256, 0x7f, 1), Unusable::Size),
        (bits(256, 0xff, 2), Unusable::Size),
        (bits(1025, 0x01, 1), Unusable::Size),
        (with(&rsa, "e", "AQ".into()), Unusable::Size),
        (with(&rsa, "e", "Ag".into()), Unusable::Size),
        (with(&rsa, "e", "AQAA".into()), Unusable::Size),
        (with(&rsa, "e", "AAEAAQ".into()), Unusable::Size),
        (with(&rsa, "e", "AQAAAAE".into()), Unusable::Size),
    ] {
        // A good key beside it is still read.
        let found = jwks(&[jwk.clone(), rsa_jwk("good")]);
        assert_eq!(found.keys.len(), 1, "{jwk}");
        assert_eq!(
            found.skipped,
            [Skipped {
                place: 0,
                why: wanted
            }],
            "{jwk}"
        );
    }
    assert_eq!(jwks(&[with(&rsa, "e", "Aw".into())]).keys.len(), 1);
    let mut zero = vec![0];
    zero.extend(modulus(&super::rsa()));
    let with_zero = jwks(&[with(&rsa, "n", base64url::encode(zero).into())]);
    assert_eq!(with_zero.keys, jwks(&[rsa]).keys);
}

#[test]
fn each_bad_document_gets_its_reason() {
    let read = |document: &Value| Jwks::read(document.to_string().as_bytes());
    assert_eq!(read(&json!({})), Err(BadJwks::NoList));
    assert_eq!(read(&json!({ "keys": {} })), Err(BadJwks::NoList));
    assert_eq!(read(&json!({ "keys": [] })), Err(BadJwks::NoneUsable));
    assert_eq!(
        read(&json!({ "keys": vec![rsa_jwk("k"); 65] })),
        Err(BadJwks::TooMany)
    );
    assert_eq!(Jwks::read(&vec![b' '; 300_000]), Err(BadJwks::TooLong));
    assert!(matches!(Jwks::read(b"<html>"), Err(BadJwks::Json(_))));
}
