//! Takes secrets out of what a foreign program printed: those of the config that it was given.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Shorter ones would also strike out ordinary words.
const SHORTEST: usize = 4;
const STRUCK: &str = "***";

/// What the key of a secret has in its name.
const NAMES: [&str; 4] = ["password", "secret", "token", "auth"];

/// Everything in the install config that must not be repeated, longest first so that no part of one is left.
pub fn secrets(install_config: &str) -> Vec<String> {
    let config: Value = serde_norway::from_str(install_config).unwrap_or_default();
    let mut secrets = Vec::new();
    collect("", &config, &mut secrets);
    for secret in secrets.clone() {
        let quoted = Value::String(secret).to_string();
        let quoted = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let quoted = quoted.unwrap_or_default().to_owned();
        // Programs in Go write these three so that they are harmless in HTML.
        let harmless = [('&', "\\u0026"), ('<', "\\u003c"), ('>', "\\u003e")];
        secrets.push(
            harmless
                .iter()
                .fold(quoted.clone(), |text, (c, written)| text.replace(*c, written)),
        );
        secrets.push(quoted);
    }
    secrets.retain(|secret| secret.trim().len() >= SHORTEST);
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    secrets
}

/// `key` is the one that the value is under, lists aside.
fn collect(key: &str, value: &Value, secrets: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, value)| collect(key, value, secrets)),
        Value::Array(items) => items.iter().for_each(|item| collect(key, item, secrets)),
        Value::String(text) => {
            if text.contains("://") {
                secrets.extend(userinfo(text));
            }
            let key = key.to_ascii_lowercase();
            if !NAMES.iter().any(|name| key.contains(name)) {
                return;
            }
            secrets.push(text.clone());
            secrets.extend(decoded(text).into_iter().flatten());
            if let Ok(parsed @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
                // As another program may print it: written anew, or as a string inside of JSON.
                secrets.push(parsed.to_string());
                collect("", &parsed, secrets);
            }
        }
        // A password of digits, which YAML reads as a number.
        Value::Number(number) => collect(key, &Value::String(number.to_string()), secrets),
        Value::Null | Value::Bool(_) => {}
    }
}

/// `user:password` and the password alone.
fn decoded(auth: &str) -> Option<Vec<String>> {
    let text = String::from_utf8(STANDARD.decode(auth).ok()?).ok()?;
    let text = text.trim().to_owned();
    let password = text.split_once(':').map(|(_, password)| password.to_owned());
    Some([text].into_iter().chain(password).collect())
}

fn userinfo(url: &str) -> Vec<String> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let Some((userinfo, _)) = authority.rsplit_once('@') else {
        return Vec::new();
    };
    let password = userinfo.split_once(':').map(|(_, password)| password.to_owned());
    [userinfo.to_owned()].into_iter().chain(password).collect()
}

pub fn redact(text: &str, secrets: &[String]) -> String {
    let struck = |text: String, secret: &String| {
        if text.contains(secret.as_str()) {
            text.replace(secret.as_str(), STRUCK)
        } else {
            text
        }
    };
    secrets.iter().fold(text.to_owned(), struck)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_form_of_a_secret_is_left() {
        // alice:correct-horse
        let secret = r#"{"auths": {"quay.io": {"auth": "YWxpY2U6Y29ycmVjdC1ob3JzZQ==", "email": "a@b.c"}}}"#;
        let proxy = "http://bob:hunter22@proxy.example.com:3128";
        let config = json!({ "pullSecret": secret, "proxy": { "httpProxy": proxy } });
        let secrets = secrets(&config.to_string());
        let said = format!(
            "bad pullSecret {secret} or {} or {:?}; auth YWxpY2U6Y29ycmVjdC1ob3JzZQ== of alice:correct-horse, \
             password correct-horse, via http://bob:hunter22@proxy.example.com:3128 to quay.io",
            secret.replace(": ", ":").replace(", ", ","),
            secret
        );
        let told = redact(&said, &secrets);
        for leak in ["YWxpY2U6", "correct-horse", "hunter22"] {
            assert!(!told.contains(leak), "{told}");
        }
        assert!(
            told.contains("to quay.io") && told.contains("proxy.example.com"),
            "{told}"
        );
    }

    #[test]
    fn without_secrets_nothing_is_struck_out() {
        let plain = json!({ "pullSecret": "", "metadata": { "name": "plain" } }).to_string();
        for config in ["", &plain, "- [", "plain"] {
            assert_eq!(redact("a plain text", &secrets(config)), "a plain text");
        }
    }

    #[test]
    fn what_people_changed_in_the_config_is_struck_out_too() {
        let bmc = json!({ "address": "redfish://10.0.0.1/redfish", "username": "admin", "password": "m3tal&<tubes>" });
        let fence =
            json!([{ "address": "https://fencer:p0sts@bmc.example.com", "password": "wire-\"fence" }]);
        let config = serde_norway::to_string(&json!({
            "metadata": { "name": "blue" },
            "platform": { "baremetal": { "hosts": [{ "name": "one", "bmc": bmc }] } },
            "controlPlane": { "fencing": { "credentials": fence } },
            "proxy": { "httpsProxy": "http://carol:t0psecret@proxy.example.com" },
            "pullSecret": { "auths": { "quay.io": { "auth": "YWxpY2U6Y29ycmVjdC1ob3JzZQ==" } } },
            "bootstrapToken": 1234567,
        }));
        let config = config.unwrap();
        let secrets = secrets(&config);
        let said = format!(
            "invalid: {config} or m3tal\\u0026\\u003ctubes\\u003e, {:?}, correct-horse, 1234567 for blue at \
             proxy.example.com",
            "wire-\"fence"
        );
        let told = redact(&said, &secrets);
        for leak in [
            "m3tal",
            "tubes",
            "p0sts",
            "fence\"",
            "wire-",
            "t0psecret",
            "YWxp",
            "correct",
            "1234567",
        ] {
            assert!(!told.contains(leak), "{leak}: {told}");
        }
        assert!(told.contains("for blue at proxy.example.com"), "{told}");
    }
}
