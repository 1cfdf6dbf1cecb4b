//! Discovery documents, good ones and bad ones.

use super::*;
use crate::strict_json::Fault;
use crate::told::Told;

fn issuer() -> Issuer {
    Issuer::new(ISSUER).unwrap()
}

fn read(document: &Value) -> Result<Discovery, BadDiscovery> {
    Discovery::read(document.to_string().as_bytes(), &issuer())
}

#[test]
fn the_document_says_where_everything_is() {
    let found = read(&json!({
        "issuer": ISSUER,
        "jwks_uri": "https://keys.example.com/certs",
        "token_endpoint": "https://issuer.example.com/token",
        "device_authorization_endpoint": "https://issuer.example.com/device",
        "id_token_signing_alg_values_supported": ["PS256", "RS256"],
        "claims_supported": ["sub"],
    }));
    let found = found.unwrap();
    assert_eq!(found.jwks_uri, "https://keys.example.com/certs");
    assert_eq!(
        found.token_endpoint.as_deref(),
        Some("https://issuer.example.com/token")
    );
    assert_eq!(
        found.device_authorization_endpoint.as_deref(),
        Some("https://issuer.example.com/device")
    );
    assert_eq!(
        issuer().discovery_url(),
        format!("{ISSUER}/.well-known/openid-configuration")
    );
    let slash = Issuer::new(&format!("{ISSUER}/")).unwrap();
    assert_eq!(slash.discovery_url(), issuer().discovery_url());
}

#[test]
fn an_issuer_is_reached_safely_or_is_on_this_machine() {
    for good in [
        ISSUER,
        "https://[2001:db8::1]:8443",
        "http://127.0.0.1:5556/dex",
        "http://localhost",
        "http://[::1]:1",
    ] {
        assert!(Issuer::new(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "issuer.example.com",
        "https://",
        "https:///x",
        "http://issuer.example.com",
        "http://127.0.0.1.example.com",
        "http://localhost@example.com",
        "https://user@example.com",
        "https://example.com?x",
        "https://example.com#x",
        "https://example.com/a b",
        "https://example.com/\n",
        "ftp://example.com",
    ] {
        assert_eq!(Issuer::new(bad), Err(BadDiscovery::Issuer), "{bad}");
    }
}

#[test]
fn each_bad_document_gets_its_reason() {
    let jwks = "https://keys.example.com/certs";
    let other = "https://issuer.example.com/realms/one/";
    for (document, wanted) in [
        (json!([]), BadDiscovery::Json(Fault::NotAnObject)),
        (json!({ "jwks_uri": jwks }), BadDiscovery::Missing("issuer")),
        (
            json!({ "issuer": other, "jwks_uri": jwks }),
            BadDiscovery::OtherIssuer(Told::new(other)),
        ),
        (json!({ "issuer": ISSUER }), BadDiscovery::Missing("jwks_uri")),
        (
            json!({ "issuer": ISSUER, "jwks_uri": 7 }),
            BadDiscovery::Address("jwks_uri"),
        ),
        (
            json!({ "issuer": ISSUER, "jwks_uri": "http://keys.example.com" }),
            BadDiscovery::Address("jwks_uri"),
        ),
        // An issuer elsewhere must not send the hub to its own machine.
        (
            json!({ "issuer": ISSUER, "jwks_uri": "http://127.0.0.1/x" }),
            BadDiscovery::Address("jwks_uri"),
        ),
        (
            json!({ "issuer": ISSUER, "jwks_uri": "file:///etc/passwd" }),
            BadDiscovery::Address("jwks_uri"),
        ),
        (
            json!({ "issuer": ISSUER, "jwks_uri": jwks, "token_endpoint": "http://x" }),
            BadDiscovery::Address("token_endpoint"),
        ),
        (
            json!({ "issuer": ISSUER, "jwks_uri": jwks, "id_token_signing_alg_values_supported": ["HS256", "none"] }),
            BadDiscovery::Algorithms,
        ),
    ] {
        assert_eq!(read(&document), Err(wanted), "{document}");
    }
    let twice =
        format!(r#"{{"issuer":"{ISSUER}","jwks_uri":"{jwks}","jwks_uri":"https://evil.example.com"}}"#);
    let wanted = BadDiscovery::Json(Fault::Twice(Told::new("jwks_uri")));
    assert_eq!(Discovery::read(twice.as_bytes(), &issuer()), Err(wanted));
    assert_eq!(
        Discovery::read(&[b' '; 70_000], &issuer()),
        Err(BadDiscovery::TooLong)
    );
}
