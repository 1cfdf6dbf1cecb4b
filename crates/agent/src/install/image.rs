//! Which system an order wants on the disk, and where it comes from.

use super::source::{Fetch, Source};
use crate::steps::Context;
use anyhow::{Context as _, ensure};
use muster_contract::v2::agent::args::InstallArgs;

/// What coreos-installer's arguments mean to us.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Empty when nobody names one.
    pub url: String,
    /// Of the file at the address, in small letters; empty when nobody knows it.
    pub sha256: String,
    /// All other arguments.
    pub args: Vec<String>,
}

impl Image {
    /// What the order names, or else what the agent's settings name.
    pub fn of(context: &Context, order: &InstallArgs) -> anyhow::Result<Self> {
        let args: Vec<String> = if order.installer_args.is_empty() {
            Vec::new()
        } else {
            serde_json::from_str(&order.installer_args).context("cannot read the installer's arguments")?
        };
        let mut image = parse(args);
        if image.url.is_empty() && !image.has("--image-file") {
            let settings = &context.settings;
            let (url, sum) = apart(&settings.image_url);
            image.url = url.to_owned();
            image.sha256 = if settings.image_sha256.is_empty() {
                sum
            } else {
                settings.image_sha256.to_ascii_lowercase()
            };
        }
        Ok(image)
    }

    /// Whether the arguments hold this one, with or without a value behind it.
    pub fn has(&self, flag: &str) -> bool {
        let is_it = |arg: &String| {
            arg.strip_prefix(flag)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        self.args.iter().any(is_it)
    }

    pub fn fetch(&self, context: &Context) -> Source {
        let fetch = Fetch {
            http: context.hub.http.clone(),
            clock: context.clock.clone(),
            url: self.url.clone(),
        };
        Source::new(fetch, context.shared.install.cancel.clone())
    }

    pub fn check_sum(&self, sum: &str) -> anyhow::Result<()> {
        let wanted = &self.sha256;
        ensure!(
            wanted.is_empty() || sum == wanted,
            "the image is damaged: its sha256 is {sum} instead of {wanted}"
        );
        Ok(())
    }
}

/// The sum of an image may stand behind its address: `#sha256=…`.
fn apart(url: &str) -> (&str, String) {
    let (bare, sum) = url.split_once("#sha256=").unwrap_or((url, ""));
    (bare, sum.to_ascii_lowercase())
}

fn parse(args: Vec<String>) -> Image {
    let mut image = Image::default();
    let mut is_url = false;
    for arg in args {
        let is_flag = !is_url && matches!(arg.as_str(), "--image-url" | "-u");
        let url = match arg.strip_prefix("--image-url=") {
            Some(url) => Some(url),
            None if is_url => Some(arg.as_str()),
            None => None,
        };
        is_url = is_flag;
        match url {
            Some(url) => {
                let (bare, sum) = apart(url);
                image.url = bare.to_owned();
                image.sha256 = sum;
            }
            None if is_flag => {}
            None => image.args.push(arg),
        }
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_and_its_sum_are_found_in_the_arguments() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let image = parse(words(
            "--append-karg ip=eth0:dhcp --image-url http://h/os.raw.xz#sha256=ABCD -n",
        ));
        assert_eq!(
            (image.url.as_str(), image.sha256.as_str()),
            ("http://h/os.raw.xz", "abcd")
        );
        assert_eq!(image.args, words("--append-karg ip=eth0:dhcp -n"));
        let image = parse(words("--image-url=http://h/os.raw --save-partlabel=data"));
        assert_eq!(
            (image.url.as_str(), image.sha256.as_str()),
            ("http://h/os.raw", "")
        );
        assert!(image.has("--save-partlabel") && !image.has("--save-part"));
        assert_eq!(parse(Vec::new()), Image::default());
    }
}
