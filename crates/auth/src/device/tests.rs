//! The login of a person, played with the answers that issuers give.

use super::*;
use crate::strict_json::Fault;
use crate::told::Told;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn device() -> Value {
    json!({
        "device_code": "GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS",
        "user_code": "WDJB-MJHT",
        "verification_uri": "https://example.com/device",
        "verification_uri_complete": "https://example.com/device?user_code=WDJB-MJHT",
        "expires_in": 1800,
        "interval": 5,
    })
}

fn read(value: &Value) -> Result<DeviceAnswer, BadAnswer> {
    DeviceAnswer::read(value.to_string().as_bytes())
}

fn with(name: &str, value: Value) -> Value {
    let mut device = device();
    device[name] = value;
    device
}

fn error(word: &str) -> Vec<u8> {
    json!({ "error": word, "error_description": "…" })
        .to_string()
        .into_bytes()
}

fn tokens() -> Vec<u8> {
    json!({ "access_token": "at", "id_token": "it", "refresh_token": "rt", "token_type": "Bearer", "expires_in": 300 })
        .to_string()
        .into_bytes()
}

/// RFC 8628, sections 3.1 to 3.4.
#[test]
fn the_messages_of_the_rfc() {
    assert_eq!(
        ask_for_device("1406020730", &["openid", "profile"]),
        [
            ("client_id", "1406020730".to_owned()),
            ("scope", "openid profile".to_owned())
        ]
    );
    let answer = read(&device()).unwrap();
    assert_eq!(answer.user_code, "WDJB-MJHT");
    assert_eq!(answer.verification_uri, "https://example.com/device");
    assert_eq!(
        answer.verification_uri_complete.as_deref(),
        Some("https://example.com/device?user_code=WDJB-MJHT")
    );
    assert_eq!(
        (answer.expires_in, answer.interval),
        (SignedDuration::from_mins(30), SignedDuration::from_secs(5))
    );
    assert_eq!(
        ask_for_tokens("1406020730", &answer.device_code),
        [
            (
                "grant_type",
                "urn:ietf:params:oauth:grant-type:device_code".to_owned()
            ),
            (
                "device_code",
                "GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS".to_owned()
            ),
            ("client_id", "1406020730".to_owned()),
        ]
    );
    assert!(!format!("{answer:?}").contains("GmRh"));
}

#[test]
fn issuers_that_write_it_differently_are_understood() {
    let mut old = with("verification_url", json!("https://example.com/old"));
    for name in ["verification_uri", "verification_uri_complete", "interval"] {
        old.as_object_mut().unwrap().shift_remove(name);
    }
    old["expires_in"] = "900".into();
    let answer = read(&old).unwrap();
    assert_eq!(answer.verification_uri, "https://example.com/old");
    assert_eq!(
        (answer.expires_in, answer.interval),
        (SignedDuration::from_mins(15), SignedDuration::from_secs(5))
    );
    let hasty = read(&with("interval", json!(0))).unwrap();
    assert_eq!(hasty.interval, SignedDuration::from_secs(1));
    let slow = read(&with("interval", json!(4_000_000_000_u32))).unwrap();
    assert_eq!(slow.interval, SignedDuration::from_mins(5));
}

#[test]
fn each_bad_answer_gets_its_reason() {
    for (answer, wanted) in [
        (json!([]), BadAnswer::Json(Fault::NotAnObject)),
        (
            json!({ "error": "invalid_client" }),
            BadAnswer::Refused(Told::new("invalid_client")),
        ),
        (with("device_code", json!("")), BadAnswer::Missing("device_code")),
        (with("user_code", json!(null)), BadAnswer::Missing("user_code")),
        (
            with("user_code", json!("\u{1b}[2J")),
            BadAnswer::Member("user_code"),
        ),
        (
            with("user_code", json!("x".repeat(65))),
            BadAnswer::Member("user_code"),
        ),
        (
            with("verification_uri", json!("javascript:alert(1)")),
            BadAnswer::Member("verification_uri"),
        ),
        (
            with("verification_uri", json!("https://example.com/\u{7}")),
            BadAnswer::Member("verification_uri"),
        ),
        (
            with("verification_uri", json!(null)),
            BadAnswer::Missing("verification_uri"),
        ),
        (
            with("verification_uri_complete", json!("-oProxy")),
            BadAnswer::Member("verification_uri_complete"),
        ),
        (with("expires_in", json!(null)), BadAnswer::Missing("expires_in")),
        (with("expires_in", json!(-1)), BadAnswer::Member("expires_in")),
        (with("expires_in", json!("soon")), BadAnswer::Member("expires_in")),
        (with("interval", json!(1.5)), BadAnswer::Member("interval")),
    ] {
        assert_eq!(read(&answer), Err(wanted), "{answer}");
    }
    assert_eq!(DeviceAnswer::read(&[b' '; 200_000]), Err(BadAnswer::TooLong));
}

#[test]
fn somebody_logs_in_after_a_while() {
    let mut polling = Polling::new(&read(&device()).unwrap(), at(0));
    assert_eq!(polling.turn(at(0)), Turn::Wait(at(5)));
    assert_eq!(polling.turn(at(5)), Turn::Ask);
    assert_eq!(
        polling.answered(&error("authorization_pending"), at(6)),
        Outcome::Pending
    );
    assert_eq!(polling.turn(at(10)), Turn::Wait(at(11)));
    assert_eq!(polling.answered(&error("slow_down"), at(11)), Outcome::Pending);
    assert_eq!(polling.turn(at(11)), Turn::Wait(at(21)));
    assert_eq!(polling.answered(&error("slow_down"), at(21)), Outcome::Pending);
    assert_eq!(polling.turn(at(21)), Turn::Wait(at(36)));
    let Outcome::Done(tokens) = polling.answered(&tokens(), at(36)) else {
        panic!("there are tokens");
    };
    assert_eq!(tokens.access_token.reveal(), "at");
    assert_eq!(tokens.refresh_token.as_ref().map(Secret::reveal), Some("rt"));
    assert_eq!(tokens.expires_in, Some(SignedDuration::from_secs(300)));
    let shown = format!("{tokens:?}");
    assert!(
        !["\"at\"", "\"it\"", "\"rt\""]
            .iter()
            .any(|secret| shown.contains(secret)),
        "{shown}"
    );
}

#[test]
fn each_end_without_tokens_says_why() {
    let polling = Polling::new(&read(&device()).unwrap(), at(0));
    let malformed = json!({ "token_type": "bearer" }).to_string().into_bytes();
    let mac = json!({ "access_token": "x", "token_type": "mac" })
        .to_string()
        .into_bytes();
    for (answer, wanted) in [
        (error("access_denied"), GivenUp::Denied),
        (error("expired_token"), GivenUp::Expired),
        (
            error("invalid_grant"),
            GivenUp::Refused(Told::new("invalid_grant")),
        ),
        (error(""), GivenUp::Refused(Told::new(""))),
        (
            b"<html>".to_vec(),
            GivenUp::Answer(BadAnswer::Json(Fault::Syntax)),
        ),
        (malformed, GivenUp::Answer(BadAnswer::Missing("access_token"))),
        (mac, GivenUp::Answer(BadAnswer::Member("token_type"))),
    ] {
        assert_eq!(polling.clone().answered(&answer, at(5)), Outcome::GiveUp(wanted));
    }
    assert_eq!(polling.turn(at(1799)), Turn::Ask);
    assert_eq!(polling.turn(at(1800)), Turn::GiveUp(GivenUp::Expired));
}

#[test]
fn an_issuer_that_is_away_is_asked_less_and_less() {
    let mut polling = Polling::new(&read(&device()).unwrap(), at(0));
    let mut now = 5;
    let mut pauses = Vec::new();
    for _ in 0..8 {
        polling.unanswered(at(now));
        let Turn::Wait(next) = polling.turn(at(now)) else {
            panic!("there is time left at {now}");
        };
        pauses.push(next.as_second() - now);
        now = next.as_second();
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 300, 300, 300]);
}

#[test]
fn old_tokens_are_exchanged_for_new_ones() {
    let given = Tokens::read(&tokens()).unwrap();
    let form = refresh("muster", given.refresh_token.as_ref().unwrap());
    assert_eq!(form[0].1, "refresh_token");
    assert_eq!(form[1], ("refresh_token", "rt".to_owned()));
    assert_eq!(
        Tokens::read(&error("invalid_grant")),
        Err(BadAnswer::Refused(Told::new("invalid_grant")))
    );
}

proptest! {
    /// Whatever the issuer answers: it is never asked more often than it wants, and the login ends.
    #[test]
    fn laws_of_polling(answers in proptest::collection::vec(0_u8..3, 0..400)) {
        let mut polling = Polling::new(&read(&device()).unwrap(), at(0));
        let (mut now, mut least, mut asked) = (0, 5, 0);
        for answer in answers {
            now = match polling.turn(at(now)) {
                Turn::Wait(next) => next.as_second(),
                Turn::Ask => now,
                Turn::GiveUp(why) => {
                    prop_assert_eq!(why, GivenUp::Expired);
                    break;
                }
            };
            if polling.turn(at(now)) != Turn::Ask {
                continue;
            }
            prop_assert!(now - asked >= least, "{} after {}", now, asked);
            asked = now;
            match answer {
                0 => prop_assert_eq!(polling.answered(&error("authorization_pending"), at(now)), Outcome::Pending),
                1 => {
                    least += 5;
                    prop_assert_eq!(polling.answered(&error("slow_down"), at(now)), Outcome::Pending);
                }
                _ => polling.unanswered(at(now)),
            }
        }
        prop_assert!(now <= 1800);
    }
}
