//! Choosing images and releases, and reading the reference's configuration.

use super::*;

#[test]
fn our_own_lists_have_exactly_one_default_version() {
    let catalog = Catalog::default();
    let versions = catalog.openshift_versions(&VersionFilter::default());
    let defaults: Vec<_> = versions.values().filter(|line| line.default).collect();
    assert_eq!(defaults.len(), 1);
    assert_eq!(defaults[0].cpu_architectures, ["x86_64", "arm64"]);
    assert!(catalog.notes.is_empty());
    for architecture in ["x86_64", "arm64"] {
        assert!(catalog.os_image(Some("4.20"), architecture).is_ok());
        assert!(
            catalog
                .os_image(Some(catalog.default_version()), architecture)
                .is_ok()
        );
    }
}

#[test]
fn an_os_image_is_found_by_line_patch_version_build_or_not_at_all() {
    let catalog = Catalog::default();
    let line = |wanted: Option<&str>, arch: &str| {
        catalog
            .os_image(wanted, arch)
            .map(|image| image.openshift_version.clone())
            .map_err(|no| no.field)
    };
    assert_eq!(line(Some("4.20"), "x86_64").unwrap(), "4.20");
    assert_eq!(line(Some("4.20.33"), "aarch64").unwrap(), "4.20");
    assert_eq!(line(Some("4.20.33-multi"), "arm64").unwrap(), "4.20");
    assert_eq!(line(Some("9.6.20260112-0"), "x86_64").unwrap(), "4.20");
    assert_eq!(line(None, "x86_64").unwrap(), "4.21");
    assert_eq!(line(Some("1.2"), "x86_64").unwrap_err(), "openshift_version");
    assert_eq!(line(None, "s390x").unwrap_err(), "cpu_architecture");
}

#[test]
fn a_release_is_exact_or_the_newest_of_its_line() {
    let catalog = Catalog::default();
    let url = |wanted: &str, arch: &str| catalog.release(wanted, arch).map(|release| release.url.clone());
    let image = |tag: &str| format!("quay.io/openshift-release-dev/ocp-release:{tag}");
    assert_eq!(url("4.20", "x86_64").unwrap(), image("4.20.33-x86_64"));
    assert_eq!(url("4.20.33", "arm64").unwrap(), image("4.20.33-aarch64"));
    assert_eq!(url("4.20", "multi").unwrap(), image("4.20.33-multi"));
    assert_eq!(url("4.20.33-multi", "x86_64").unwrap(), image("4.20.33-multi"));
    assert_eq!(url("4.20.1", "x86_64").unwrap_err().field, "openshift_version");
    assert!(url("4.20", "s390x").is_err());
}

#[test]
fn the_reference_configuration_is_read_and_a_missing_default_is_chosen_and_told() {
    let releases = r#"[
        {"openshift_version":"4.20","version":"4.20.2","cpu_architecture":"x86_64","cpu_architectures":["x86_64"],"url":"r:1"},
        {"openshift_version":"4.20-multi","version":"4.20.2-multi","cpu_architecture":"multi","cpu_architectures":["x86_64","arm64"],"url":"r:2"},
        {"openshift_version":"4.20","version":"4.20.9","cpu_architecture":"x86_64","url":"r:3"},
        {"openshift_version":"4.21","version":"4.21.0-rc.10","cpu_architecture":"x86_64","url":"r:4","support_level":"beta"},
        {"openshift_version":"4.21","version":"4.21.0-rc.9","cpu_architecture":"x86_64","url":"r:5"}]"#;
    let images = r#"[{"openshift_version":"4.20","cpu_architecture":"amd64","url":"http://images/a.iso","version":"1"}]"#;
    let catalog = Catalog::from_json(Some(images), Some(releases)).unwrap();
    assert_eq!(catalog.default_version(), "4.20.9");
    assert_eq!(catalog.notes.len(), 1);
    assert_eq!(catalog.release("4.21", "x86_64").unwrap().url, "r:4");
    assert_eq!(catalog.release("4.20.2", "arm64").unwrap().url, "r:2");
    assert_eq!(
        catalog.os_image(None, "x86_64").unwrap().url,
        "http://images/a.iso"
    );

    let newest = VersionFilter {
        version: Some("4.20".into()),
        only_latest: true,
    };
    let names: Vec<String> = catalog.openshift_versions(&newest).into_keys().collect();
    assert_eq!(names, ["4.20.2-multi", "4.20.9"]);
    assert!(
        catalog
            .openshift_versions(&VersionFilter {
                version: Some("9.9".into()),
                only_latest: false
            })
            .is_empty()
    );
}

#[test]
fn a_catalogue_that_contradicts_itself_says_how() {
    let two = r#"[{"openshift_version":"4.20.1","url":"a","default":true},{"openshift_version":"4.20.2","url":"b","default":true}]"#;
    let same = r#"[{"openshift_version":"4.20.1","url":"a"},{"openshift_version":"4.20.1","url":"b"}]"#;
    let cases = [
        (two, "4.20.1, 4.20.2"),
        (same, "twice"),
        ("[]", "empty"),
        ("{}", "JSON"),
        (r#"[{"openshift_version":"new","url":"a"}]"#, "not a version"),
    ];
    for (json, word) in cases {
        let text = Catalog::from_json(None, Some(json)).unwrap_err().to_string();
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn the_default_may_be_marked_on_every_architecture_of_one_version() {
    let json = r#"[{"openshift_version":"4.20.1","cpu_architecture":"x86_64","url":"a","default":true},
                   {"openshift_version":"4.20.1","cpu_architecture":"arm64","url":"b","default":true}]"#;
    let catalog = Catalog::from_json(None, Some(json)).unwrap();
    assert_eq!(catalog.default_version(), "4.20.1");
    let line = &catalog.openshift_versions(&VersionFilter::default())["4.20.1"];
    assert_eq!(
        serde_json::to_value(line).unwrap(),
        serde_json::json!({
            "display_name": "4.20.1", "support_level": "production", "default": true, "cpu_architectures": ["x86_64", "arm64"]
        })
    );
}

#[test]
fn features_follow_version_and_architecture() {
    let level = |version: &str, arch: &str, id: &str| features(version, Some(arch))[id];
    assert_eq!(level("4.20", "x86_64", "SNO"), Level::Supported);
    assert_eq!(level("4.20", "x86_64", "SDN_NETWORK_TYPE"), Level::Unavailable);
    assert_eq!(level("4.14.9", "x86_64", "SDN_NETWORK_TYPE"), Level::Supported);
    assert_eq!(level("4.20", "s390x", "MINIMAL_ISO"), Level::Unavailable);
    assert_eq!(level("5.0.0-ec.5", "aarch64", "TNA"), Level::TechPreview);
    let archs = architectures(&Catalog::default(), "4.20");
    assert_eq!(archs["ARM64_ARCHITECTURE"], Level::Supported);
    assert_eq!(archs["S390X_ARCHITECTURE"], Level::Unavailable);
    assert_eq!(archs["MULTIARCH_RELEASE_IMAGE"], Level::Supported);
}

#[test]
fn a_checksum_of_an_os_image_is_kept_in_small_letters_and_a_wrong_one_is_refused() {
    let images = |sum: &str| {
        format!(r#"[{{"openshift_version":"4.20","url":"http://x/a.iso","version":"1","sha256":"{sum}"}}]"#)
    };
    let catalog = Catalog::from_json(Some(&images(&"AB".repeat(32))), None).unwrap();
    assert_eq!(catalog.os_images[0].sha256, Some("ab".repeat(32)));
    for wrong in ["", "abc", &"x".repeat(64)] {
        let error = Catalog::from_json(Some(&images(wrong)), None).unwrap_err();
        assert!(error.to_string().contains("4.20 for x86_64"), "{error}");
    }
}

#[test]
fn images_for_machines_that_install_alone_are_not_taken_for_live_ones() {
    let json = r#"[{"openshift_version":"4.20","url":"http://x/ove.iso","version":"1","type":"disconnected-iso"},
                   {"openshift_version":"4.20","url":"http://x/live.iso","version":"1","type":"full-iso"},
                   {"openshift_version":"4.19","url":"http://x/old.iso","version":"0"}]"#;
    let catalog = Catalog::from_json(Some(json), None).unwrap();
    let image = catalog.os_image(Some("4.20"), "x86_64").unwrap();
    assert_eq!(
        (image.url.as_str(), catalog.os_images.len()),
        ("http://x/live.iso", 2)
    );
    let wrong = json.replace("full-iso", "floppy");
    let error = Catalog::from_json(Some(&wrong), None).unwrap_err();
    assert!(error.to_string().contains("OS_IMAGES"), "{error}");
}

#[test]
fn an_image_is_the_release_of_the_list_or_of_its_tag() {
    let catalog = Catalog::default();
    let told = |image: &str| {
        let found = catalog.release_of_image(image);
        found.map(|release| (release.version, release.cpu_architecture, release.url))
    };
    let release =
        |version: &str, architecture: &str, url: &str| Ok((version.into(), architecture.into(), url.into()));
    let listed = "quay.io/openshift-release-dev/ocp-release:4.21.28-aarch64";
    assert_eq!(told(listed), release("4.21.28", "arm64", listed));
    let mirrored = "registry.example.com:5000/ocp/release:4.20.7-x86_64@sha256:0123";
    assert_eq!(
        told(mirrored),
        release("4.20.7", "x86_64", mirrored),
        "not listed, and with a port and a digest"
    );
    let multi = "registry.example.com/release:4.20.7-multi";
    assert_eq!(told(multi), release("4.20.7-multi", "multi", multi));
    let preview = "registry.example.com/release:4.22.0-rc.1-ppc64le";
    assert_eq!(told(preview), release("4.22.0-rc.1", "ppc64le", preview));
    for unknown in [
        "registry.example.com:5000/release",
        "registry.example.com/release@sha256:0123",
        "r:latest",
        "r:4.20",
    ] {
        let refused = told(unknown).unwrap_err().to_string();
        assert!(refused.contains("names no version"), "{refused}");
    }
}
