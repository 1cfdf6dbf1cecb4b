//! Custom manifests: a safe file name, a folder, base64 content of bounded size.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::error::{Checked, Invalid, quoted};
use super::schema;

/// One manifest at most: 1 MiB.
pub const CONTENT_MAX: usize = 1024 * 1024;

pub fn manifest_folder(folder: &str) -> Checked {
    schema::one_of("folder", folder, &["manifests", "openshift"])
}

/// `name.json`, `name.yaml`, `name.yml`, or a patch of the latter two such as `name.yaml.patch_1`. It ends up in a directory,
/// in headers and in lists that people read line by line: what cannot be seen has no place in it.
pub fn manifest_file_name(name: &str) -> Checked {
    let fix =
        "use a plain name that ends in .json, .yaml or .yml (or .yaml.patch…), without slashes and line ends";
    let bad = || Invalid::schema("file_name", format!("cannot be {}", quoted(name)), fix);
    let unseen = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if name.contains('/') || name.contains(unseen) {
        return Err(bad());
    }
    let plain = [".json", ".yaml", ".yml"]
        .iter()
        .any(|ending| name.ends_with(ending));
    let patch = [".yaml.patch", ".yml.patch"].iter().any(|mark| {
        name.rfind(mark).is_some_and(|at| {
            let rest = &name[at + mark.len()..];
            rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
    });
    if plain || patch { Ok(()) } else { Err(bad()) }
}

/// Decodes and measures. An empty manifest is as useless as a broken one.
pub fn manifest_content(base64: &str) -> Checked<Vec<u8>> {
    let content = STANDARD
        .decode(base64.trim())
        .map_err(|_| Invalid::rule("content", "is not base64", "encode the manifest with base64"))?;
    if content.is_empty() {
        return Err(Invalid::rule(
            "content",
            "is empty",
            "give the manifest's text in base64",
        ));
    }
    if content.len() > CONTENT_MAX {
        return Err(Invalid::rule(
            "content",
            format!("has {} bytes", content.len()),
            format!("split it into manifests of at most {CONTENT_MAX}"),
        ));
    }
    Ok(content)
}
