//! Reads Ignition configs as far as images without Ignition need them: files, and the texts of units.

use anyhow::Context as _;
use base64::Engine;
use flate2::read::GzDecoder;
use serde::Deserialize;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    storage: Storage,
    systemd: Systemd,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Storage {
    files: Vec<File>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct File {
    pub path: String,
    mode: Option<u32>,
    contents: Contents,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Contents {
    source: Option<String>,
    compression: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Systemd {
    units: Vec<Unit>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Unit {
    name: String,
    contents: Option<String>,
}

impl Config {
    pub fn parse(text: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }

    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.storage.files.iter()
    }

    pub fn unit(&self, name: &str) -> Option<&str> {
        let unit = self.systemd.units.iter().find(|unit| unit.name == name)?;
        unit.contents.as_deref()
    }
}

impl File {
    /// Nothing when the content is not in the config itself.
    pub fn content(&self) -> Option<Vec<u8>> {
        let content = data_url(self.contents.source.as_deref()?)?;
        if self.contents.compression.as_deref() != Some("gzip") {
            return Some(content);
        }
        let mut plain = Vec::new();
        GzDecoder::new(&content[..]).read_to_end(&mut plain).ok()?;
        Some(plain)
    }

    /// Writes it below a root.
    pub fn write(&self, root: &Path) -> anyhow::Result<()> {
        let content = self.content().context("its content is not in the config")?;
        let is_inside = !self.path.split('/').any(|part| part == "..");
        anyhow::ensure!(is_inside, "it lies elsewhere");
        let path = root.join(self.path.trim_start_matches('/'));
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, content)?;
        let mode = std::fs::Permissions::from_mode(self.mode.unwrap_or(0o644));
        Ok(std::fs::set_permissions(&path, mode)?)
    }
}

/// A config with more files, for root's eyes only. Files that the config has already are left as they are.
pub fn add_secret_files(config: &[u8], files: &[(String, String)]) -> anyhow::Result<Vec<u8>> {
    let mut config: serde_json::Value = serde_json::from_slice(config)?;
    let root = config.as_object_mut().context("it is no object")?;
    let storage = root.entry("storage").or_insert_with(|| serde_json::json!({}));
    let storage = storage.as_object_mut().context("its storage is no object")?;
    let list = storage.entry("files").or_insert_with(|| serde_json::json!([]));
    let list = list.as_array_mut().context("its files are no list")?;
    for (path, content) in files {
        if list.iter().any(|file| file["path"] == path.as_str()) {
            continue;
        }
        let encoded = base64::engine::general_purpose::STANDARD.encode(content);
        let source = format!("data:;base64,{encoded}");
        list.push(serde_json::json!({"path": path, "mode": 0o600, "contents": {"source": source}}));
    }
    Ok(serde_json::to_vec(&config)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_are_read_in_both_spellings() {
        assert_eq!(data_url("data:,a%20b").unwrap(), b"a b");
        assert_eq!(data_url("data:;base64,YSBi").unwrap(), b"a b");
        assert_eq!(data_url("http://x"), None);
        assert_eq!(data_url("data:,%4"), None);
    }

    #[test]
    fn files_are_added_beside_those_that_are_there() {
        let files = [
            ("/a".to_owned(), "new".to_owned()),
            ("/b".to_owned(), "B".to_owned()),
        ];
        let text = add_secret_files(
            br#"{"storage":{"files":[{"path":"/a","contents":{"source":"data:,old"}}]}}"#,
            &files,
        )
        .unwrap();
        let config = Config::parse(&text).unwrap();
        let contents: Vec<Vec<u8>> = config.files().filter_map(File::content).collect();
        assert_eq!(contents, [b"old".to_vec(), b"B".to_vec()]);
        assert!(add_secret_files(b"{}", &files).is_ok());
        assert!(add_secret_files(b"[]", &files).is_err());
    }

    #[test]
    fn files_are_written_with_their_modes_and_only_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let config = Config::parse(
            br#"{"storage":{"files":[
                {"path":"/etc/deep/er","mode":384,"contents":{"source":"data:,hello"}},
                {"path":"/etc/packed","contents":{"compression":"gzip",
                    "source":"data:;base64,H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA=="}},
                {"path":"/../escape","contents":{"source":"data:,x"}},
                {"path":"/etc/far","contents":{"source":"http://h/x"}}]},
              "systemd":{"units":[{"name":"a.service","contents":null},{"name":"b.service","contents":"B"}]}}"#,
        )
        .unwrap();
        let results: Vec<bool> = config
            .files()
            .map(|file| file.write(root.path()).is_ok())
            .collect();
        assert_eq!(results[..2], [true, true]);
        assert_eq!(results[2..], [false, false]);
        let path = root.path().join("etc/deep/er");
        assert_eq!(std::fs::read(&path).unwrap(), b"hello");
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            (config.unit("a.service"), config.unit("b.service")),
            (None, Some("B"))
        );
    }
}
