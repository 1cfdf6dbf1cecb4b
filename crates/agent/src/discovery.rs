//! Reads the discovery config that the hub put into the image: the same one that starts the reference's agent.
//!
//! An image whose init is this agent carries the config as `config.ign` in its root, as CoreOS images do. Its unit
//! `agent.service` holds the hub's address, the InfraEnv and the token; its files hold the certificates to trust.

use crate::settings::Settings;
use anyhow::Context;
use base64::Engine;
use serde::Deserialize;
use std::path::Path;

/// Relative to the root.
pub const CONFIG: &str = "config.ign";
const UNIT: &str = "agent.service";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    storage: Storage,
    systemd: Systemd,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Storage {
    files: Vec<File>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    path: String,
    contents: Contents,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Contents {
    source: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Systemd {
    units: Vec<Unit>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Unit {
    name: String,
    contents: String,
}

/// Takes from the config what the settings do not hold yet.
pub fn fill(settings: &mut Settings, config: &[u8]) -> anyhow::Result<()> {
    let config: Config =
        serde_json::from_slice(config).context("the discovery config in the image cannot be read")?;
    let Some(unit) = config.systemd.units.iter().find(|unit| unit.name == UNIT) else {
        return Ok(());
    };
    for line in unit.contents.lines().map(str::trim) {
        if let Some(setting) = line.strip_prefix("Environment=") {
            fill_variable(settings, &unquoted(setting));
        } else if let Some(command) = line.strip_prefix("ExecStart=") {
            fill_command(settings, command);
        }
    }
    write_trust(settings, &config.storage.files)
}

fn fill_variable(settings: &mut Settings, text: &str) {
    let Some((name, value)) = text.split_once('=') else {
        return;
    };
    if name == "PULL_SECRET_TOKEN" && settings.token.0.is_empty() {
        settings.token = value.into();
    }
}

fn fill_command(settings: &mut Settings, command: &str) {
    let words: Vec<String> = words(command);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, None),
        };
        let mut value = || value.or_else(|| words.next()).unwrap_or_default();
        match flag {
            "--url" if settings.url.is_empty() => settings.url = value().to_owned(),
            "--infra-env-id" if settings.infra_env_id.is_nil() => {
                settings.infra_env_id = value().parse().unwrap_or_default();
            }
            "--agent-version" if settings.agent_version.is_empty() => {
                settings.agent_version = value().to_owned()
            }
            "--insecure" => settings.insecure |= value() == "true",
            "--cacert" if settings.cacert.is_none() => settings.cacert = Some(value().into()),
            _ => {}
        }
    }
}

/// The certificates are a file of the config, which nobody has written to the disk yet.
fn write_trust(settings: &mut Settings, files: &[File]) -> anyhow::Result<()> {
    let Some(path) = settings.cacert.clone() else {
        return Ok(());
    };
    let path = settings.root.join(path.strip_prefix("/").unwrap_or(&path));
    settings.cacert = Some(path.clone());
    if path.exists() {
        return Ok(());
    }
    let source = files
        .iter()
        .find(|file| path.ends_with(file.path.trim_start_matches('/')));
    let Some(source) = source.and_then(|file| file.contents.source.as_deref()) else {
        return Ok(());
    };
    let content = data_url(source).context("the certificates in the discovery config cannot be read")?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    write(&path, &content)
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, content).with_context(|| format!("{} cannot be written", path.display()))
}

/// The content of a `data:` URL.
pub fn data_url(source: &str) -> Option<Vec<u8>> {
    let (kind, data) = source.strip_prefix("data:")?.split_once(',')?;
    if kind.ends_with(";base64") {
        return base64::engine::general_purpose::STANDARD.decode(data).ok();
    }
    let mut out = Vec::with_capacity(data.len());
    let mut bytes = data.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?];
        out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    Some(out)
}

/// Splits as systemd does: blanks part words, double quotes keep them together.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut inside = false;
    for c in command.chars() {
        match c {
            '"' => inside = !inside,
            c if c.is_whitespace() && !inside => {
                if !word.is_empty() {
                    words.push(unescaped(&std::mem::take(&mut word)));
                }
            }
            c => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(unescaped(&word));
    }
    words
}

fn unquoted(text: &str) -> String {
    unescaped(text.trim_matches('"'))
}

/// `%%` is a percent sign in units.
fn unescaped(text: &str) -> String {
    text.replace("%%", "%").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    const UNIT_TEXT: &str = "[Service]\nEnvironment=\"PULL_SECRET_TOKEN=tok%%en\"\n\
        ExecStartPre=/usr/bin/podman run --url wrong\n\
        ExecStart=/usr/local/bin/agent --url \"http://hub.example.com:8090\" \
        --infra-env-id 431b034d-b436-4a8d-8f84-09948d2454dd --agent-version \"agent:v1\" --insecure=true \
        --cacert /etc/assisted-service/service-ca-cert.crt\n";

    fn config() -> Vec<u8> {
        serde_json::json!({
            "ignition": {"version": "3.1.0"},
            "storage": {"files": [{"path": "/etc/assisted-service/service-ca-cert.crt",
                "contents": {"source": "data:text/plain;charset=utf-8;base64,UEVN"}}]},
            "systemd": {"units": [{"name": "agent.service", "contents": UNIT_TEXT}]},
        })
        .to_string()
        .into_bytes()
    }

    #[test]
    fn the_config_of_the_image_tells_everything() {
        let root = tempfile::tempdir().unwrap();
        let mut settings = Settings::try_parse_from(["a", "--root", root.path().to_str().unwrap()]).unwrap();
        fill(&mut settings, &config()).unwrap();
        assert_eq!(settings.url, "http://hub.example.com:8090");
        assert_eq!(settings.token.0, "tok%en");
        assert_eq!(settings.agent_version, "agent:v1");
        assert!(settings.insecure);
        assert_eq!(std::fs::read(settings.cacert.unwrap()).unwrap(), b"PEM");
    }

    #[test]
    fn flags_win_over_the_config() {
        let mut settings =
            Settings::try_parse_from(["a", "--url", "http://mine", "--cacert", "/nowhere"]).unwrap();
        fill(&mut settings, &config()).unwrap();
        assert_eq!(settings.url, "http://mine");
    }

    #[test]
    fn data_urls_are_read_in_both_spellings() {
        assert_eq!(data_url("data:,a%20b").unwrap(), b"a b");
        assert_eq!(data_url("data:;base64,YSBi").unwrap(), b"a b");
        assert_eq!(data_url("http://x"), None);
        assert_eq!(data_url("data:,%4"), None);
    }
}
