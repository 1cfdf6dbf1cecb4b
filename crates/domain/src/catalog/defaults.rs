//! Our own lists for a hub without settings: a few current versions on the two common architectures.

use super::release::{Release, SupportLevel};
use super::{OsImage, Version};

/// Release line, build of its live ISO, OS build.
const OS: [(&str, &str, &str); 5] = [
    ("4.18", "4.18.30", "418.94.202511191518-0"),
    ("4.19", "4.19.19", "9.6.20251023-0"),
    ("4.20", "4.20.13", "9.6.20260112-0"),
    ("4.21", "4.21.0", "9.6.20251212-1"),
    ("4.22", "latest", "4.22-latest"),
];

const RELEASES: [&str; 5] = ["4.18.52", "4.19.42", "4.20.33", "4.21.28", "4.22.0"];
const DEFAULT: &str = "4.21.28";

/// Name on our wire, name in file names of the images.
const ARCHITECTURES: [(&str, &str); 2] = [("x86_64", "x86_64"), ("arm64", "aarch64")];

pub fn os_images() -> Vec<OsImage> {
    let all = OS
        .iter()
        .flat_map(|os| ARCHITECTURES.iter().map(move |arch| (os, arch)));
    all.map(|((line, iso, build), (word, file))| {
        // The name of the ISO changed with 4.19.
        let new_name = Version::parse(line).is_some_and(|version| version >= Version::new(4, 19));
        let kind = if new_name { "live-iso" } else { "live" };
        // A line without a pinned build is served under the name its newest build always has.
        let name = match *iso {
            "latest" => format!("rhcos-{kind}.{file}.iso"),
            iso => format!("rhcos-{iso}-{file}-{kind}.{file}.iso"),
        };
        let site = "https://mirror.openshift.com/pub/openshift-v4";
        OsImage {
            openshift_version: (*line).to_owned(),
            cpu_architecture: (*word).to_owned(),
            url: format!("{site}/{file}/dependencies/rhcos/{line}/{iso}/{name}"),
            version: (*build).to_owned(),
            sha256: None,
            image_type: None,
        }
    })
    .collect()
}

pub fn releases() -> Vec<Release> {
    let repository = "quay.io/openshift-release-dev/ocp-release";
    let mut list = Vec::new();
    for version in RELEASES {
        let entry = |version: String, word: &str, runs_on: Vec<String>, tag: String| Release {
            default: version == DEFAULT,
            version,
            cpu_architecture: word.to_owned(),
            cpu_architectures: runs_on,
            url: format!("{repository}:{tag}"),
            support_level: SupportLevel::Production,
            mco_image: String::new(),
            must_gather_image: String::new(),
            coreos_image: String::new(),
        };
        for (word, file) in ARCHITECTURES {
            list.push(entry(
                version.to_owned(),
                word,
                vec![word.to_owned()],
                format!("{version}-{file}"),
            ));
        }
        let both = ARCHITECTURES.map(|(word, _)| word.to_owned()).to_vec();
        list.push(entry(
            format!("{version}-multi"),
            "multi",
            both,
            format!("{version}-multi"),
        ));
    }
    list
}
