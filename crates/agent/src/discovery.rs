//! Reads the discovery config that the hub put into the image: the same one that starts the reference's agent.
//!
//! An image whose init is this agent carries the config as `config.ign` in its root, as CoreOS images do. Its unit
//! `agent.service` holds the hub's address, the InfraEnv and the token; its files hold the certificates to trust.

use crate::http::ANCHORS;
use crate::ignition::{self, Config};
use crate::note;
use crate::settings::Settings;
use crate::steps::registries;
use anyhow::Context;

/// Relative to the root.
pub const CONFIG: &str = "config.ign";
const UNIT: &str = "agent.service";

/// What the unit sets for the program it starts: the token, and the way through a proxy.
pub fn environment(config: &[u8]) -> Vec<(String, String)> {
    let config = Config::parse(config).unwrap_or_default();
    let unit = config.unit(UNIT).unwrap_or_default();
    let lines = unit
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Environment="));
    lines
        .flat_map(words)
        .filter_map(|word| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect()
}

/// Takes from the config what the settings do not hold yet.
pub fn fill(settings: &mut Settings, config: &[u8]) -> anyhow::Result<()> {
    for (name, value) in environment(config) {
        if name == "PULL_SECRET_TOKEN" && settings.token.0.is_empty() {
            settings.token = value.as_str().into();
        }
    }
    let config = Config::parse(config).context("cannot read the discovery config in the image")?;
    let unit = config.unit(UNIT).unwrap_or_default();
    let commands = unit
        .lines()
        .filter_map(|line| line.trim().strip_prefix("ExecStart="));
    commands.for_each(|command| fill_command(settings, command));
    write_trust(settings, &config)?;
    write_needed(settings, &config);
    Ok(())
}

/// What else the agent reads: certificates to trust in addition, the credentials for registries and their mirrors. Nobody
/// has written these files to the disk yet; where somebody has, they stay.
fn write_needed(settings: &Settings, config: &Config) {
    let is_needed = |path: &str| {
        path.strip_prefix(ANCHORS)
            .is_some_and(|rest| rest.starts_with('/'))
            || matches!(path, registries::CREDENTIALS | registries::MIRRORS)
    };
    let files = config.files().filter(|file| {
        let path = file.path.trim_start_matches('/');
        is_needed(path) && !settings.root.join(path).exists()
    });
    for file in files {
        if let Err(error) = file.write(&settings.root) {
            note!(
                "the agent does not use {} of the discovery config: {error:#}",
                file.path
            );
        }
    }
}

fn fill_command(settings: &mut Settings, command: &str) {
    let words = words(command);
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
fn write_trust(settings: &mut Settings, config: &Config) -> anyhow::Result<()> {
    let Some(path) = settings.cacert.clone() else {
        return Ok(());
    };
    let path = settings.root.join(path.strip_prefix("/").unwrap_or(&path));
    settings.cacert = Some(path.clone());
    if path.exists() {
        return Ok(());
    }
    let is_it = |file: &&ignition::File| path.ends_with(file.path.trim_start_matches('/'));
    match config.files().find(is_it) {
        Some(file) => file
            .write(&settings.root)
            .context("cannot use the certificates in the discovery config"),
        None => Ok(()),
    }
}

/// Splits as systemd does: blanks part words, double quotes keep them together, a backslash takes the meaning from
/// what follows, and `%%` and `$$` stand for one of them.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut inside = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => inside = !inside,
            '\\' => word.extend(chars.next()),
            '%' | '$' => {
                chars.next_if_eq(&c);
                word.push(c);
            }
            c if c.is_whitespace() && !inside => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
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
    fn what_the_config_trusts_in_addition_is_written_where_it_is_looked_for() {
        let root = tempfile::tempdir().unwrap();
        let mut settings = Settings::try_parse_from(["a", "--root", root.path().to_str().unwrap()]).unwrap();
        let theirs = "etc/pki/ca-trust/source/anchors/domain.crt";
        std::fs::create_dir_all(root.path().join(theirs).parent().unwrap()).unwrap();
        std::fs::write(root.path().join(theirs), "theirs").unwrap();
        let file = |path: &str| serde_json::json!({"path": path, "contents": {"source": "data:,ours"}});
        let bundle = "/etc/pki/ca-trust/source/anchors/assisted-infraenv-additional-trust-bundle.pem";
        let files = [
            bundle,
            "/etc/pki/ca-trust/source/anchors/domain.crt",
            "/root/.docker/config.json",
            "/etc/motd",
        ];
        let config = serde_json::json!({"storage": {"files": files.map(file)}});
        fill(&mut settings, config.to_string().as_bytes()).unwrap();
        let text = |path: &str| std::fs::read_to_string(root.path().join(path.trim_start_matches('/'))).ok();
        assert_eq!(text(bundle).as_deref(), Some("ours"));
        assert_eq!(text(theirs).as_deref(), Some("theirs"));
        assert_eq!(text("/root/.docker/config.json").as_deref(), Some("ours"));
        assert_eq!(text("/etc/motd"), None);
    }

    #[test]
    fn flags_win_over_the_config() {
        let mut settings =
            Settings::try_parse_from(["a", "--url", "http://mine", "--cacert", "/nowhere"]).unwrap();
        fill(&mut settings, &config()).unwrap();
        assert_eq!(settings.url, "http://mine");
    }

    #[test]
    fn the_way_through_a_proxy_is_told() {
        let unit = "[Service]\nEnvironment=\"HTTP_PROXY=http://user:a$$b@proxy:1\" NO_PROXY=x\n\
                    Environment=PULL_SECRET_TOKEN=t\nExecStart=/bin/agent\n";
        let config = serde_json::json!({"systemd": {"units": [{"name": UNIT, "contents": unit}]}});
        let told = environment(config.to_string().as_bytes());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            told,
            [
                pair("HTTP_PROXY", "http://user:a$b@proxy:1"),
                pair("NO_PROXY", "x"),
                pair("PULL_SECRET_TOKEN", "t")
            ]
        );
        assert_eq!(environment(b"{}"), []);
    }
}
