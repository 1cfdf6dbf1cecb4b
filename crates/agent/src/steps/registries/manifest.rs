//! What a manifest says of an image: its size, and where its layers are.

use serde::Deserialize;

/// All forms that registries speak of.
pub const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// An image, or a list with one image for each kind of machine.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Manifest {
    manifests: Vec<Listed>,
    config: Part,
    layers: Vec<Part>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Listed {
    digest: String,
    platform: Platform,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Platform {
    architecture: String,
    os: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Part {
    pub digest: String,
    pub size: u64,
}

impl Manifest {
    pub fn is_list(&self) -> bool {
        !self.manifests.is_empty()
    }

    /// The digest of the image for this kind of machine.
    pub fn here(&self) -> Option<&str> {
        let mine = self
            .manifests
            .iter()
            .find(|one| one.platform.os == "linux" && one.platform.architecture == architecture())?;
        Some(&mine.digest)
    }

    /// Bytes of a pull.
    pub fn size(&self) -> u64 {
        let layers: u64 = self.layers.iter().map(|layer| layer.size).sum();
        self.config.size + layers
    }

    pub fn largest(&self) -> Option<&Part> {
        self.layers.iter().max_by_key(|layer| layer.size)
    }
}

/// As registries call it.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_added_and_the_image_for_this_machine_is_found() {
        let image: Manifest = serde_json::from_str(
            r#"{"config":{"size":5},"layers":[{"digest":"a","size":10},{"digest":"b","size":20}]}"#,
        )
        .unwrap();
        assert_eq!(image.size(), 35);
        assert_eq!(image.largest().unwrap().digest, "b");
        assert!(!image.is_list());
        let list = format!(
            r#"{{"manifests":[{{"digest":"no","platform":{{"os":"linux","architecture":"vax"}}}},
                {{"digest":"yes","platform":{{"os":"linux","architecture":"{}"}}}}]}}"#,
            architecture()
        );
        let list: Manifest = serde_json::from_str(&list).unwrap();
        assert!(list.is_list());
        assert_eq!(list.here(), Some("yes"));
    }
}
