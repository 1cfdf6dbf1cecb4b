//! What a URL asks for. One reading for both servers, so that they cannot disagree.

use crate::source::{Form, Proof};
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderMap, StatusCode, header};
use std::collections::HashMap;

/// Paths under these belong to images, whatever follows.
pub const PREFIXES: [&str; 6] = [
    "/byid/",
    "/bytoken/",
    "/byapikey/",
    "/images/",
    "/boot-artifacts/",
    "/i/",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Artifact {
    FullIso,
    MinimalIso,
    Initrd,
    InitrdAddrsize,
    Kernel,
    Rootfs,
    InsFile,
}

impl Artifact {
    /// As in the URL.
    pub fn word(self) -> &'static str {
        match self {
            Artifact::FullIso => "full.iso",
            Artifact::MinimalIso => "minimal.iso",
            Artifact::Initrd => "pxe-initrd",
            Artifact::InitrdAddrsize => "s390x-initrd-addrsize",
            Artifact::Kernel => "kernel",
            Artifact::Rootfs => "rootfs",
            Artifact::InsFile => "ins-file",
        }
    }

    pub fn is_iso(self) -> bool {
        matches!(self, Artifact::FullIso | Artifact::MinimalIso)
    }

    /// Which form of the payload goes in.
    pub fn form(self) -> Form {
        match self {
            Artifact::FullIso => Form::Full,
            Artifact::MinimalIso | Artifact::Initrd | Artifact::InitrdAddrsize => Form::Minimal,
            Artifact::Kernel | Artifact::Rootfs | Artifact::InsFile => Form::Minimal,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Of one InfraEnv.
    Image {
        id: String,
        version: String,
        architecture: String,
        artifact: Artifact,
        /// The name of what was in the image when the address was given out; empty in addresses without one. Whatever
        /// it says, the image of now is served.
        edition: String,
        proof: Proof,
    },
    /// The same for everybody.
    Boot {
        version: String,
        architecture: String,
        artifact: Artifact,
    },
    ShortIso(String),
    ShortScript(String),
}

/// Status and text of the reply.
pub type Refusal = (StatusCode, String);

pub fn is_ours(path: &str) -> bool {
    PREFIXES.iter().any(|prefix| path.starts_with(prefix))
}

pub fn route(path: &str, query: Option<&str>, headers: &HeaderMap) -> Result<Route, Refusal> {
    let segments: Vec<String> = path.split('/').skip(1).map(decoded).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let query: HashMap<String, String> =
        serde_urlencoded::from_str(query.unwrap_or_default()).unwrap_or_default();
    let shown = proof(&query, headers);
    match segments.as_slice() {
        ["byid", id, base @ .., file] => iso(id, Base::of(base)?, file, shown),
        ["bytoken", token, base @ .., file] => {
            // A key in the query goes before a token in the path.
            let proof = query.get("api_key").map_or_else(
                || Proof::ImageToken((*token).to_owned()),
                |key| Proof::ApiKey(key.clone()),
            );
            iso(&subject(token)?, Base::of(base)?, file, proof)
        }
        ["byapikey", key, base @ .., file] => iso(
            &subject(key)?,
            Base::of(base)?,
            file,
            Proof::ApiKey((*key).to_owned()),
        ),
        ["images", id] => {
            let kind = needed(&query, "type")?;
            let file = match kind.as_str() {
                "full-iso" => "full.iso",
                "minimal-iso" => "minimal.iso",
                "disconnected-iso" => "disconnected.iso",
                _ => return Err((StatusCode::BAD_REQUEST, format!("{kind} is not a type of image"))),
            };
            let base = Base {
                version: &needed(&query, "version")?,
                architecture: &architecture(&query),
                edition: "",
            };
            iso(id, base, file, shown)
        }
        ["images", id, file @ ("pxe-initrd" | "s390x-initrd-addrsize")] => {
            initrd(id, "", file, &query, shown)
        }
        [
            "images",
            id,
            edition,
            file @ ("pxe-initrd" | "s390x-initrd-addrsize"),
        ] => initrd(id, edition, file, &query, shown),
        ["boot-artifacts", name] => {
            let artifact = match *name {
                "kernel" => Artifact::Kernel,
                "rootfs" => Artifact::Rootfs,
                "ins-file" => Artifact::InsFile,
                _ => return Err((StatusCode::NOT_FOUND, format!("there is no boot artifact {name}"))),
            };
            Ok(Route::Boot {
                version: needed(&query, "version")?,
                architecture: architecture(&query),
                artifact,
            })
        }
        ["i", name] if name.ends_with(".iso") => {
            Ok(Route::ShortIso(name.trim_end_matches(".iso").to_owned()))
        }
        ["i", name] if name.ends_with(".ipxe") => {
            Ok(Route::ShortScript(name.trim_end_matches(".ipxe").to_owned()))
        }
        _ => Err(no_image()),
    }
}

fn no_image() -> Refusal {
    (StatusCode::NOT_FOUND, "there is no such image".to_owned())
}

/// Of what an image is made, and which edition of it was meant.
struct Base<'a> {
    version: &'a str,
    architecture: &'a str,
    edition: &'a str,
}

impl<'a> Base<'a> {
    /// As between the name of the InfraEnv and that of the file.
    fn of(segments: &[&'a str]) -> Result<Base<'a>, Refusal> {
        let (version, architecture, edition) = match *segments {
            [version, architecture] => (version, architecture, ""),
            [version, architecture, edition] => (version, architecture, edition),
            _ => return Err(no_image()),
        };
        Ok(Base {
            version,
            architecture,
            edition,
        })
    }
}

fn initrd(
    id: &str,
    edition: &str,
    file: &str,
    query: &HashMap<String, String>,
    proof: Proof,
) -> Result<Route, Refusal> {
    let (artifact, architecture) = if file == "pxe-initrd" {
        (Artifact::Initrd, architecture(query))
    } else {
        (Artifact::InitrdAddrsize, "s390x".to_owned())
    };
    Ok(Route::Image {
        id: id.to_owned(),
        version: needed(query, "version")?,
        architecture,
        artifact,
        edition: edition.to_owned(),
        proof,
    })
}

fn iso(id: &str, base: Base<'_>, file: &str, proof: Proof) -> Result<Route, Refusal> {
    let artifact = match file {
        "full.iso" => Artifact::FullIso,
        "minimal.iso" => Artifact::MinimalIso,
        "disconnected.iso" => return Err((StatusCode::NOT_FOUND, alone())),
        _ => return Err((StatusCode::NOT_FOUND, format!("there is no image file {file}"))),
    };
    Ok(Route::Image {
        id: id.to_owned(),
        version: base.version.to_owned(),
        architecture: base.architecture.to_owned(),
        artifact,
        edition: base.edition.to_owned(),
        proof,
    })
}

/// A path of the reference for which there is nothing here.
fn alone() -> String {
    "the hub makes no images for machines that install themselves without a hub; use full.iso or minimal.iso"
        .to_owned()
}

/// The first that is there counts.
fn proof(query: &HashMap<String, String>, headers: &HeaderMap) -> Proof {
    if let Some(key) = query.get("api_key") {
        return Proof::ApiKey(key.clone());
    }
    if let Some(token) = query.get("image_token") {
        return Proof::ImageToken(token.clone());
    }
    let header = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    header.map_or(Proof::None, |value| Proof::Authorization(value.to_owned()))
}

/// Whose image a token is for. It is not verified here: who gives the payload judges it.
fn subject(token: &str) -> Result<String, Refusal> {
    let refusal = || (StatusCode::NOT_FOUND, "this hub did not sign the link".to_owned());
    let body = token.split('.').nth(1).ok_or_else(refusal)?;
    // Signers differ in alphabet and padding.
    let body = body.replace('+', "-").replace('/', "_");
    let padding = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = GeneralPurpose::new(&URL_SAFE, padding)
        .decode(body)
        .map_err(|_| refusal())?;
    let claims: serde_json::Value = serde_json::from_slice(&bytes).map_err(|_| refusal())?;
    let claim = |name: &str| {
        claims
            .get(name)
            .and_then(|value| value.as_str())
            .filter(|text| !text.is_empty())
    };
    claim("sub")
        .or_else(|| claim("infra_env_id"))
        .map(str::to_owned)
        .ok_or_else(refusal)
}

fn needed(query: &HashMap<String, String>, name: &str) -> Result<String, Refusal> {
    let value = query.get(name).filter(|value| !value.is_empty());
    value
        .cloned()
        .ok_or_else(|| (StatusCode::BAD_REQUEST, format!("the query must name the {name}")))
}

fn architecture(query: &HashMap<String, String>) -> String {
    query
        .get("arch")
        .filter(|arch| !arch.is_empty())
        .cloned()
        .unwrap_or_else(|| "x86_64".to_owned())
}

fn decoded(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, later)) = rest.split_first() {
        let code = later
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|two| std::str::from_utf8(two).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &later[2..];
            }
            None => {
                bytes.push(*first);
                rest = later;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(artifact: Artifact, arch: &str, proof: Proof) -> Result<Route, StatusCode> {
        edition(artifact, arch, "", proof)
    }

    fn edition(artifact: Artifact, arch: &str, edition: &str, proof: Proof) -> Result<Route, StatusCode> {
        Ok(Route::Image {
            id: "x".into(),
            version: "4.20".into(),
            architecture: arch.into(),
            artifact,
            edition: edition.into(),
            proof,
        })
    }

    fn token(claims: &str) -> String {
        let body = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims);
        format!("h.{body}.s")
    }

    #[test]
    fn every_path_of_the_contract() {
        let by_sub = token(r#"{"sub":"x"}"#);
        let by_id = token(r#"{"infra_env_id":"x","n":"??>>"}"#);
        let table = [
            (
                "/byid/x/4.20/x86_64/full.iso".to_owned(),
                image(Artifact::FullIso, "x86_64", Proof::None),
            ),
            (
                "/byid/x/4.20/arm64/minimal.iso".into(),
                image(Artifact::MinimalIso, "arm64", Proof::None),
            ),
            (
                "/byid/x/4.20/arm64/minimal.iso?api_key=k".into(),
                image(Artifact::MinimalIso, "arm64", Proof::ApiKey("k".into())),
            ),
            (
                "/byid/x/4%2E20/arm64/full.iso".into(),
                image(Artifact::FullIso, "arm64", Proof::None),
            ),
            ("/byid/x/4.20/x86_64/other.iso".into(), Err(StatusCode::NOT_FOUND)),
            ("/byid/x/4.20/x86_64".into(), Err(StatusCode::NOT_FOUND)),
            (
                "/byid/x/4.20/x86_64/0a1b2c3d4e/full.iso".into(),
                edition(Artifact::FullIso, "x86_64", "0a1b2c3d4e", Proof::None),
            ),
            (
                "/byid/x/4.20/arm64/0a1b2c3d4e/minimal.iso?api_key=k".into(),
                edition(
                    Artifact::MinimalIso,
                    "arm64",
                    "0a1b2c3d4e",
                    Proof::ApiKey("k".into()),
                ),
            ),
            (
                "/byid/x/4.20/x86_64/0a1b2c3d4e/more/full.iso".into(),
                Err(StatusCode::NOT_FOUND),
            ),
            (
                format!("/bytoken/{by_sub}/4.20/x86_64/0a1b2c3d4e/full.iso"),
                edition(
                    Artifact::FullIso,
                    "x86_64",
                    "0a1b2c3d4e",
                    Proof::ImageToken(by_sub.clone()),
                ),
            ),
            (
                format!("/byapikey/{by_id}/4.20/x86_64/0a1b2c3d4e/full.iso"),
                edition(
                    Artifact::FullIso,
                    "x86_64",
                    "0a1b2c3d4e",
                    Proof::ApiKey(by_id.clone()),
                ),
            ),
            (
                "/images/x/0a1b2c3d4e/pxe-initrd?version=4.20".into(),
                edition(Artifact::Initrd, "x86_64", "0a1b2c3d4e", Proof::None),
            ),
            (
                "/images/x/0a1b2c3d4e/other?version=4.20".into(),
                Err(StatusCode::NOT_FOUND),
            ),
            (
                format!("/bytoken/{by_sub}/4.20/x86_64/full.iso"),
                image(Artifact::FullIso, "x86_64", Proof::ImageToken(by_sub.clone())),
            ),
            (
                format!("/byapikey/{by_id}/4.20/x86_64/full.iso"),
                image(Artifact::FullIso, "x86_64", Proof::ApiKey(by_id.clone())),
            ),
            (
                "/byapikey/nonsense/4.20/x86_64/full.iso".into(),
                Err(StatusCode::NOT_FOUND),
            ),
            (
                "/images/x?version=4.20&type=full-iso".into(),
                image(Artifact::FullIso, "x86_64", Proof::None),
            ),
            (
                "/images/x?version=4.20&type=minimal-iso&arch=arm64&image_token=t".into(),
                image(Artifact::MinimalIso, "arm64", Proof::ImageToken("t".into())),
            ),
            (
                "/images/x?version=4.20&type=odd".into(),
                Err(StatusCode::BAD_REQUEST),
            ),
            ("/images/x?version=4.20".into(), Err(StatusCode::BAD_REQUEST)),
            ("/images/x?type=full-iso".into(), Err(StatusCode::BAD_REQUEST)),
            (
                "/images/x/pxe-initrd?version=4.20&arch=".into(),
                image(Artifact::Initrd, "x86_64", Proof::None),
            ),
            ("/images/x/pxe-initrd".into(), Err(StatusCode::BAD_REQUEST)),
            (
                "/images/x/s390x-initrd-addrsize?version=4.20&arch=x86_64".into(),
                image(Artifact::InitrdAddrsize, "s390x", Proof::None),
            ),
            (
                "/boot-artifacts/kernel?version=4.20".into(),
                Ok(Route::Boot {
                    version: "4.20".into(),
                    architecture: "x86_64".into(),
                    artifact: Artifact::Kernel,
                }),
            ),
            (
                "/boot-artifacts/rootfs?version=4.20&arch=arm64".into(),
                Ok(Route::Boot {
                    version: "4.20".into(),
                    architecture: "arm64".into(),
                    artifact: Artifact::Rootfs,
                }),
            ),
            (
                "/boot-artifacts/other?version=4.20".into(),
                Err(StatusCode::NOT_FOUND),
            ),
            ("/boot-artifacts/kernel".into(), Err(StatusCode::BAD_REQUEST)),
            ("/i/abc.iso".into(), Ok(Route::ShortIso("abc".into()))),
            ("/i/abc.ipxe".into(), Ok(Route::ShortScript("abc".into()))),
            ("/i/abc".into(), Err(StatusCode::NOT_FOUND)),
        ];
        for (url, expected) in table {
            let (path, query) = url
                .split_once('?')
                .map_or((url.as_str(), None), |(path, query)| (path, Some(query)));
            assert!(is_ours(path), "{url}");
            let found = route(path, query, &HeaderMap::new()).map_err(|(status, _)| status);
            assert_eq!(found, expected, "{url}");
        }
    }

    #[test]
    fn the_header_is_shown_only_when_the_url_shows_nothing() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, "Bearer b".parse().unwrap());
        let proof = |query| match route("/byid/x/1/2/full.iso", query, &headers).unwrap() {
            Route::Image { proof, .. } => proof,
            Route::Boot { .. } | Route::ShortIso(_) | Route::ShortScript(_) => unreachable!(),
        };
        assert_eq!(proof(None), Proof::Authorization("Bearer b".into()));
        assert_eq!(proof(Some("image_token=t")), Proof::ImageToken("t".into()));
        assert_eq!(proof(Some("image_token=t&api_key=k")), Proof::ApiKey("k".into()));
    }
}
