//! Image tokens and signed paths: for one InfraEnv, with one key, until their time is over.

use super::*;
use crate::bad_token::{BadToken, Part};
use crate::base64url::{self, Misspelled};
use crate::told::Told;
use muster_vocabulary::InfraEnvId;
use proptest::prelude::*;
use uuid::Uuid;

const NOW: i64 = 1_800_000_000;
const ENV: InfraEnvId = InfraEnvId(Uuid::from_bytes([7; 16]));
const OTHER: InfraEnvId = InfraEnvId(Uuid::from_bytes([8; 16]));

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn key(letter: char) -> ImageKey {
    ImageKey::new(&letter.to_string().repeat(64)).unwrap()
}

fn keys(letter: char) -> ImageKeys {
    ImageKeys {
        current: key(letter),
        previous: None,
    }
}

/// After `a` was replaced by `b`.
fn replaced() -> ImageKeys {
    ImageKeys {
        current: key('b'),
        previous: Some((key('a'), at(NOW + 100))),
    }
}

fn checked(keys: &ImageKeys, token: &str, now: i64) -> Result<KeyAge, BadToken> {
    ImageToken::read(token)?.verify(keys, ENV, at(now))
}

fn checked_path(keys: &ImageKeys, path: &str, now: i64) -> Result<KeyAge, BadPath> {
    ShortPath::read(path)?.verify(keys, at(now))
}

#[test]
fn a_key_that_can_be_guessed_is_refused() {
    assert_eq!(ImageKey::new(&"k".repeat(31)).map(drop), Err(KeyTooShort));
    assert!(ImageKey::new(&"k".repeat(32)).is_ok());
    assert!(!format!("{:?}", key('k')).contains('k'));
}

#[test]
fn a_token_is_for_one_infra_env_and_for_a_time() {
    let token = issue(&key('a'), ENV, at(NOW + 60));
    assert_eq!(ImageToken::read(&token).unwrap().infra_env, ENV);
    assert_eq!(checked(&keys('a'), &token, NOW), Ok(KeyAge::Current));
    assert_eq!(checked(&keys('b'), &token, NOW), Err(BadToken::Signature));
    assert_eq!(checked(&keys('a'), &token, NOW + 90), Err(BadToken::Expired));
    let foreign = issue(&key('a'), OTHER, at(NOW + 60));
    assert_eq!(checked(&keys('a'), &foreign, NOW), Err(BadToken::OtherInfraEnv));
}

#[test]
fn what_the_key_before_made_is_known_as_such_until_the_grace_is_over() {
    let token = issue(&key('a'), ENV, at(NOW + 1000));
    let path = sign_path(&key('a'), ENV, ShortFile::Iso, None);
    for (now, token_age, path_age) in [
        (NOW, Ok(KeyAge::Previous), Ok(KeyAge::Previous)),
        (NOW + 99, Ok(KeyAge::Previous), Ok(KeyAge::Previous)),
        (NOW + 100, Err(BadToken::Signature), Err(BadPath::Signature)),
    ] {
        assert_eq!(checked(&replaced(), &token, now), token_age);
        assert_eq!(checked_path(&replaced(), &path, now), path_age);
    }
    let new = issue(&key('b'), ENV, at(NOW + 1000));
    assert_eq!(checked(&replaced(), &new, NOW), Ok(KeyAge::Current));
}

#[test]
fn every_changed_byte_of_a_token_is_noticed() {
    let token = issue(&key('a'), ENV, at(NOW + 60));
    for place in 0..token.len() {
        for other in "AQgw_-.= "
            .chars()
            .filter(|other| token[place..=place] != other.to_string())
        {
            let mut changed = token.clone();
            changed.replace_range(place..=place, &other.to_string());
            assert!(checked(&keys('a'), &changed, NOW).is_err(), "{place}: {other}");
        }
        assert!(checked(&keys('a'), &token[..place], NOW).is_err());
    }
}

#[test]
fn each_bad_token_gets_its_reason() {
    let made = |header: &str, claims: &str| {
        let text = format!("{}.{}", base64url::encode(header), base64url::encode(claims));
        format!("{text}.{}", base64url::encode(key('a').sign(text.as_bytes())))
    };
    let hs = r#"{"alg":"HS256","typ":"JWT"}"#;
    let algorithm = |told| BadToken::Algorithm {
        told: Told::new(told),
        needed: "HS256",
    };
    let sub = format!(r#"{{"sub":"{ENV}"}}"#);
    let full = format!(r#"{{"exp":{},"sub":"{ENV}"}}"#, NOW + 60);
    let more = format!(r#"{{"exp":{},"sub":"{ENV}","admin":true}}"#, NOW + 60);
    for (token, wanted) in [
        (String::new(), BadToken::Empty),
        ("x".repeat(1025), BadToken::TooLong { limit: 1024 }),
        (made(r#"{"alg":"none"}"#, &full), algorithm("none")),
        (made(r#"{"alg":"ES256"}"#, &full), algorithm("ES256")),
        (made(r#"{"alg":"HS512"}"#, &full), algorithm("HS512")),
        (
            made(r#"{"alg":"HS256","kid":"x","x5c":[]}"#, &full),
            BadToken::HeaderMember(Told::new("x5c")),
        ),
        (made(hs, "{}"), BadToken::Missing("sub")),
        (made(hs, &sub), BadToken::Missing("exp")),
        (made(hs, &more), BadToken::Unexpected(Told::new("admin"))),
        (
            format!("{}=", made(hs, &full)),
            BadToken::Spelling {
                part: Part::Signature,
                how: Misspelled::Padding,
            },
        ),
    ] {
        assert_eq!(checked(&keys('a'), &token, NOW), Err(wanted), "{token:.60}");
    }
    assert_eq!(checked(&keys('a'), &made(hs, &full), NOW), Ok(KeyAge::Current));
}

#[test]
fn signed_paths_are_what_firmware_takes() {
    for file in ShortFile::ALL {
        for until in [None, Some(at(NOW + 60)), Some(at(253_402_207_200))] {
            let path = sign_path(&key('a'), ENV, file, until);
            assert!(path.len() <= 100 && path.len() <= LONGEST_PATH, "{path}");
            assert!(path.starts_with("/i/") && path.ends_with(file.ending()), "{path}");
            assert!(
                path.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"/.-_".contains(&byte)),
                "{path}"
            );
            let read = ShortPath::read(&path).unwrap();
            assert_eq!((read.infra_env, read.file, read.expires_at), (ENV, file, until));
            assert_eq!(read.verify(&keys('a'), at(NOW)), Ok(KeyAge::Current));
            assert_eq!(read.verify(&keys('b'), at(NOW)), Err(BadPath::Signature));
        }
    }
}

#[test]
fn a_signed_path_ends_on_time_and_cannot_be_prolonged() {
    let path = sign_path(&key('a'), ENV, ShortFile::Iso, Some(at(NOW + 60)));
    assert_eq!(checked_path(&keys('a'), &path, NOW + 59), Ok(KeyAge::Current));
    assert_eq!(checked_path(&keys('a'), &path, NOW + 60), Err(BadPath::Expired));
    let seconds = format!(".{:x}.", NOW + 60);
    for other in [
        format!(".{:x}.", NOW + 600),
        ".".to_owned(),
        format!(".0{:x}.", NOW + 60),
        format!(".+{:x}.", NOW + 60),
    ] {
        let longer = path.replace(&seconds, &other);
        assert_eq!(
            checked_path(&keys('a'), &longer, NOW),
            Err(BadPath::Signature),
            "{longer}"
        );
    }
    let upper = path.replace(&seconds, &seconds.to_uppercase());
    assert!(checked_path(&keys('a'), &upper, NOW).is_err());
    let script = path.replace(".iso", ".ipxe");
    assert_eq!(checked_path(&keys('a'), &script, NOW), Err(BadPath::Signature));
    let foreign = path.replace(&ENV.to_string(), &OTHER.to_string());
    assert_eq!(checked_path(&keys('a'), &foreign, NOW), Err(BadPath::Signature));
}

#[test]
fn every_changed_byte_of_a_path_is_noticed() {
    let path = sign_path(&key('a'), ENV, ShortFile::Iso, Some(at(NOW + 60)));
    for place in 0..path.len() {
        for other in "A0fgQw_-./= %?"
            .chars()
            .filter(|other| path[place..=place] != other.to_string())
        {
            let mut changed = path.clone();
            changed.replace_range(place..=place, &other.to_string());
            assert!(checked_path(&keys('a'), &changed, NOW).is_err(), "{changed}");
        }
    }
}

#[test]
fn other_paths_are_not_taken_for_signed_ones() {
    let tag = base64url::encode([0; 32]);
    for path in [
        String::new(),
        "/i/.iso".into(),
        format!("/i/{ENV}.iso"),
        format!("/i/{ENV}.{tag}"),
        format!("/i/{ENV}..{tag}.iso"),
        format!("/i/{ENV}.x.{tag}.iso"),
        format!("/i/{ENV}.ffffffffffffffff.{tag}.iso"),
        format!("/i/{ENV}.1.2.{tag}.iso"),
        format!("/i/{ENV}.{tag}=.iso"),
        format!("/i/{ENV}.{tag}.iso?x"),
        format!("/i//{ENV}.{tag}.iso"),
        format!("/i/{}.{}.iso", ENV, "A".repeat(100)),
    ] {
        assert_eq!(ShortPath::read(&path), Err(BadPath::Shape), "{path}");
    }
}

proptest! {
    #[test]
    fn a_path_is_read_back(id in any::<[u8; 16]>(), until in proptest::option::of(NOW + 1..NOW * 3)) {
        let (infra_env, until) = (InfraEnvId(Uuid::from_bytes(id)), until.map(at));
        let path = sign_path(&key('a'), infra_env, ShortFile::Iso, until);
        let read = ShortPath::read(&path).unwrap();
        prop_assert_eq!((read.infra_env, read.expires_at), (infra_env, until));
        prop_assert_eq!(read.verify(&keys('a'), at(NOW)), Ok(KeyAge::Current));
    }

    #[test]
    fn no_path_makes_it_panic(path in "/i/\\PC{0,100}[.]iso") {
        prop_assert!(checked_path(&keys('a'), &path, NOW).is_err());
    }
}
