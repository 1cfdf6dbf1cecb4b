//! An issuer as it is in tests: its keys, its documents and its tokens.

mod discovery;
mod jwks;
mod keys;
mod mapping;
mod verify;

use super::*;
use crate::base64url;
use crate::key::SigningKey;
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://issuer.example.com/realms/one";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn rsa() -> RsaKeyPair {
    let pem = pem::parse(include_str!("../../../testdata/pkcs8-rsa.pem")).unwrap();
    RsaKeyPair::from_pkcs8(pem.contents()).unwrap()
}

fn modulus(key: &RsaKeyPair) -> Vec<u8> {
    let public: ring::signature::RsaPublicKeyComponents<Vec<u8>> = key.public().into();
    public.n
}

fn rsa_jwk(kid: &str) -> Value {
    json!({ "kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "e": "AQAB", "n": base64url::encode(modulus(&rsa())) })
}

fn ec_jwk(key: &SigningKey, kid: &str) -> Value {
    let pem = pem::parse(key.public().to_pem()).unwrap();
    let point = &pem.contents()[pem.contents().len() - 64..];
    let (x, y) = (base64url::encode(&point[..32]), base64url::encode(&point[32..]));
    json!({ "kty": "EC", "crv": "P-256", "kid": kid, "x": x, "y": y })
}

fn jwks(keys: &[Value]) -> Jwks {
    Jwks::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn signed(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let text = format!(
        "{}.{}",
        base64url::encode(header.to_string()),
        base64url::encode(claims.to_string())
    );
    let signature = sign(text.as_bytes());
    format!("{text}.{}", base64url::encode(signature))
}

fn by_rsa(header: &Value, claims: &Value) -> String {
    signed(header, claims, |text| {
        let key = rsa();
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature)
            .unwrap();
        signature
    })
}
