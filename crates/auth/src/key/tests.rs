//! Keys in every form in which people have them, vectors of the RFCs, and rotation.

use super::*;
use crate::base64url;
use jiff::Timestamp;
use proptest::prelude::*;

const SEC1: &str = include_str!("../../testdata/sec1.pem");
const PKCS8: &str = include_str!("../../testdata/pkcs8.pem");
const PUBLIC: &str = include_str!("../../testdata/public.pem");
const GO: &str = include_str!("../../testdata/public-as-go.pem");

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn a_key_is_the_same_in_every_form() {
    let sec1 = SigningKey::from_pem(SEC1).unwrap();
    let pkcs8 = SigningKey::from_pem(PKCS8).unwrap();
    assert_eq!(sec1.public(), pkcs8.public());
    for public in [PUBLIC, GO] {
        let public = VerifyingKey::from_pem(public).unwrap();
        assert_eq!(sec1.belongs_to(&public), Ok(()));
        assert!(public.verifies(b"word", &pkcs8.sign(b"word").unwrap()));
    }
    let with_windows_lines = PKCS8.replace('\n', "\r\n");
    assert_eq!(SigningKey::from_pem(&with_windows_lines).unwrap().id(), sec1.id());
}

#[test]
fn what_is_written_is_what_openssl_writes() {
    let key = SigningKey::from_pem(PKCS8).unwrap();
    assert_eq!(key.to_pkcs8_pem(), PKCS8);
    assert_eq!(key.public().to_pem(), PUBLIC);
    let (_, bare) = SEC1.split_once("-----END EC PARAMETERS-----\n").unwrap();
    assert_eq!(key.to_sec1_pem(), bare);
}

#[test]
fn keys_that_are_made_are_read_back() {
    let key = SigningKey::generate().unwrap();
    assert_ne!(key.id(), SigningKey::generate().unwrap().id());
    for text in [key.to_pkcs8_pem(), key.to_sec1_pem()] {
        let read = SigningKey::from_pem(&text).unwrap();
        assert!(key.public().verifies(b"word", &read.sign(b"word").unwrap()));
        assert!(!format!("{read:?}").contains(text.lines().nth(1).unwrap()));
    }
    let public = VerifyingKey::from_pem(&key.public().to_pem()).unwrap();
    assert_eq!(public.id(), key.id());
}

#[test]
fn each_key_that_cannot_be_used_is_refused_with_its_reason() {
    let private = |text: &str| SigningKey::from_pem(text).map(drop);
    let public = |text: &str| VerifyingKey::from_pem(text).map(drop);
    let truncated = PKCS8.replace("FAsxQk", "FA");
    let other = SigningKey::generate().unwrap();
    for (name, result, wanted) in [
        ("nothing", private(""), KeyError::NotPem),
        ("no pem", private("MHcCAQEE"), KeyError::NotPem),
        (
            "long",
            private(&"x".repeat(70_000)),
            KeyError::TooLong { limit: 65_536 },
        ),
        ("public", private(PUBLIC), KeyError::None { wanted: "private" }),
        ("private", public(PKCS8), KeyError::None { wanted: "public" }),
        (
            "two",
            private(&format!("{PKCS8}{}", other.to_sec1_pem())),
            KeyError::Several,
        ),
        ("two", public(&format!("{PUBLIC}{GO}")), KeyError::Several),
        (
            "p-384",
            private(include_str!("../../testdata/sec1-p384.pem")),
            KeyError::Curve,
        ),
        (
            "p-384",
            private(include_str!("../../testdata/pkcs8-p384.pem")),
            KeyError::Curve,
        ),
        (
            "p-384",
            public(include_str!("../../testdata/public-p384.pem")),
            KeyError::Curve,
        ),
        (
            "explicit",
            private(include_str!("../../testdata/sec1-explicit-curve.pem")),
            KeyError::Curve,
        ),
        (
            "rsa",
            private(include_str!("../../testdata/pkcs8-rsa.pem")),
            KeyError::NotEc,
        ),
        (
            "ed25519",
            private(include_str!("../../testdata/pkcs8-ed25519.pem")),
            KeyError::NotEc,
        ),
        (
            "encrypted",
            private(include_str!("../../testdata/sec1-encrypted.pem")),
            KeyError::Encrypted,
        ),
        (
            "encrypted",
            private(include_str!("../../testdata/pkcs8-encrypted.pem")),
            KeyError::Encrypted,
        ),
        (
            "half",
            private(include_str!("../../testdata/sec1-without-public.pem")),
            KeyError::NoPublicKey,
        ),
        (
            "compressed",
            public(include_str!("../../testdata/public-compressed.pem")),
            KeyError::Compressed,
        ),
        ("short", private(&truncated), KeyError::Malformed),
        (
            "certificate",
            public(&PUBLIC.replace("PUBLIC KEY", "CERTIFICATE")),
            KeyError::Label(Told::new("CERTIFICATE")),
        ),
    ] {
        assert_eq!(result, Err(wanted), "{name}");
    }
}

#[test]
fn halves_of_two_keys_are_told_apart() {
    let (one, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    assert_eq!(one.belongs_to(other.public()), Err(KeyError::Mismatch));
    let mixed = document::write_sec1(&[7; 32], &point_of(&other));
    let text = document::pem(document::SEC1, mixed);
    assert_eq!(SigningKey::from_pem(&text).map(drop), Err(KeyError::Mismatch));
}

fn point_of(key: &SigningKey) -> Vec<u8> {
    let text = key.public().to_pem();
    let (_, document) = document::blocks(&text).unwrap().remove(0);
    document::read_public(&document).unwrap().to_vec()
}

#[test]
fn a_point_beside_the_curve_is_refused() {
    let mut point = point_of(&SigningKey::generate().unwrap());
    point[64] ^= 1;
    let text = document::pem(document::PUBLIC, document::write_public(&point));
    assert_eq!(VerifyingKey::from_pem(&text).map(drop), Err(KeyError::NotOnCurve));
}

/// RFC 7638, section 3.1.
#[test]
fn the_thumbprint_of_the_rfc() {
    let modulus = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRX\
                   jBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8\
                   KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xB\
                   niIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
    let id = of_rsa(&base64url::decode(modulus).unwrap(), &[1, 0, 1]);
    assert_eq!(id.as_str(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
}

/// RFC 7515, appendix A.3; the name of its key was computed with other tools.
#[test]
fn the_signature_of_the_rfc() {
    let x = base64url::decode("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU").unwrap();
    let y = base64url::decode("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0").unwrap();
    let key = VerifyingKey::on_curve(&[&[4], &x[..], &y[..]].concat()).unwrap();
    assert_eq!(key.id().as_str(), "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U");
    let signed = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19\
                  yb290Ijp0cnVlfQ";
    let signature = base64url::decode(
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    );
    assert!(key.verifies(signed.as_bytes(), &signature.unwrap()));
    assert!(!key.verifies(signed.as_bytes(), &[0; 64]));
    assert!(!key.verifies(signed.as_bytes(), &[]));
}

fn ids(set: &KeySet, now: i64) -> Vec<KeyId> {
    set.candidates(None, at(now))
        .map(|key| key.id().clone())
        .collect()
}

#[test]
fn an_old_key_verifies_until_its_time_is_over() {
    let (first, second) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let (old, new) = (first.id().clone(), second.id().clone());
    let mut set = KeySet::new(first);
    set.rotate(second, Some(at(100))).unwrap();
    assert_eq!(set.signer().unwrap().id(), &new);
    assert_eq!(ids(&set, 99), [old.clone(), new.clone()]);
    assert_eq!(ids(&set, 100), std::slice::from_ref(&new));
    assert_eq!(set.candidates(Some(old.as_str()), at(100)).count(), 0);
    assert!(!set.remove(&new), "the key that signs cannot be removed");
    assert!(set.remove(&old));
    assert!(!set.remove(&old));
    assert_eq!(ids(&set, 0), [new]);
}

#[test]
fn a_rotation_to_the_same_key_changes_nothing() {
    let key = SigningKey::generate().unwrap();
    let again = SigningKey::from_pem(&key.to_pkcs8_pem()).unwrap();
    let mut set = KeySet::new(key);
    set.rotate(again, Some(at(1))).unwrap();
    set.forget_old(at(2));
    assert_eq!(ids(&set, 2), [set.signer().unwrap().id().clone()]);
}

#[test]
fn the_first_private_key_of_a_file_signs_and_all_verify() {
    let other = SigningKey::generate().unwrap();
    let third = SigningKey::generate().unwrap();
    let text = format!(
        "{}{SEC1}{}{PUBLIC}",
        third.public().to_pem(),
        other.to_pkcs8_pem()
    );
    let set = KeySet::from_pem(&text).unwrap();
    assert_eq!(
        set.signer().unwrap().id(),
        SigningKey::from_pem(SEC1).unwrap().id()
    );
    assert_eq!(set.kept().len(), 3);
    assert!(KeySet::from_pem(PUBLIC).unwrap().signer().is_none());
}

#[test]
fn there_are_not_more_keys_than_can_be_tried() {
    let mut set = KeySet::new(SigningKey::generate().unwrap());
    for _ in 1..MOST_KEYS {
        set.keep(SigningKey::generate().unwrap().public().clone(), None)
            .unwrap();
    }
    let known = set.kept()[3].key.clone();
    assert_eq!(set.keep(known, None), Ok(()));
    assert_eq!(
        set.keep(SigningKey::generate().unwrap().public().clone(), None),
        Err(KeyError::TooMany)
    );
    assert_eq!(
        set.rotate(SigningKey::generate().unwrap(), None),
        Err(KeyError::TooMany)
    );
    assert_eq!(set.kept().len(), MOST_KEYS);
    let many: String = (0..=MOST_KEYS)
        .map(|_| SigningKey::generate().unwrap().public().to_pem())
        .collect();
    assert_eq!(KeySet::from_pem(&many).map(drop), Err(KeyError::TooMany));
}

proptest! {
    #[test]
    fn no_document_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for tag in [document::SEC1, document::PKCS8, document::PUBLIC] {
            let text = document::pem(tag, bytes.clone());
            prop_assert!(SigningKey::from_pem(&text).is_err());
            prop_assert!(VerifyingKey::from_pem(&text).is_err());
        }
    }

    #[test]
    fn a_damaged_key_is_never_another_key(place in 0_usize..138, bit in 0_u8..8) {
        let key = SigningKey::from_pem(PKCS8).unwrap();
        let (_, mut document) = document::blocks(PKCS8).unwrap().remove(0);
        document[place] ^= 1 << bit;
        if let Ok(read) = SigningKey::from_document(document::Kind::Pkcs8, &document) {
            prop_assert_eq!(read.public(), key.public());
        }
    }
}
