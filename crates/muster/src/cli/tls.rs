//! The flags of `muster serve` that are about TLS, and what is said of it at the start.

use crate::exit::{Failure, Outcome};
use crate::input;
use clap::ValueHint;
use muster_hub::config::TlsChoice;
use muster_hub::serve::Ready;
use muster_hub::tls::pair::Files;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Speak https with this certificate, followed by those that lead to its authority: a PEM file, read again when it
    /// changes
    #[arg(long, value_name = "FILE", value_parser = input::path(), value_hint = ValueHint::FilePath)]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate: a PEM file without a passphrase, read again when it changes
    #[arg(long, value_name = "FILE", value_parser = input::path(), value_hint = ValueHint::FilePath)]
    tls_key: Option<PathBuf>,
    /// Speak https with a certificate of the hub's own authority, which is made once, kept in the data directory, and put
    /// into discovery images
    #[arg(long)]
    tls_self_signed: bool,
    /// Listen here without TLS, too, for what firmware needs: images and boot scripts; whoever asks for more is refused
    #[arg(long, value_name = "ADDR:PORT")]
    plain_listen: Option<SocketAddr>,
    /// How firmware reaches that listener, when not at the base URL's host
    #[arg(long, value_name = "URL")]
    plain_url: Option<String>,
}

/// As the hub takes them.
pub struct Chosen {
    pub tls: TlsChoice,
    pub plain_listen: Option<SocketAddr>,
    pub plain_url: Option<String>,
}

impl TlsArgs {
    pub fn chosen(self) -> Outcome<Chosen> {
        // An empty variable is as good as none.
        let given = |path: Option<PathBuf>| path.filter(|path| !path.as_os_str().is_empty());
        let tls = match (given(self.tls_cert), given(self.tls_key), self.tls_self_signed) {
            (None, None, false) => TlsChoice::Off,
            (None, None, true) => TlsChoice::SelfSigned,
            (Some(cert), Some(key), false) => TlsChoice::Files(Files { cert, key }),
            (Some(_), Some(_), true) => {
                return Err(Failure::usage(
                    "--tls-self-signed and --tls-cert: only one certificate is shown",
                )
                .next("leave one of them out"));
            }
            (Some(_), None, _) => {
                return Err(Failure::usage("--tls-cert needs --tls-key").next("name the file with its key"));
            }
            (None, Some(_), _) => {
                return Err(
                    Failure::usage("--tls-key needs --tls-cert").next("name the file with its certificate")
                );
            }
        };
        Ok(Chosen {
            tls,
            plain_listen: self.plain_listen,
            plain_url: self.plain_url.filter(|url| !url.trim().is_empty()),
        })
    }
}

/// The one line that others wait for, and after it what people have to know before they come.
pub fn greeting(ready: &Ready) -> String {
    let mut text = format!("muster is ready at {}\n", ready.url);
    if let Some(plain) = ready.plain {
        text += &format!("firmware boots from http://{plain}; everything else there is refused\n");
    }
    let Some(own) = ready.tls.as_ref().and_then(|tls| tls.self_signed()) else {
        return text;
    };
    let ca = own.authority();
    let ca = std::path::absolute(&ca).unwrap_or(ca);
    let (ca, fingerprint) = (ca.display(), own.fingerprint().unwrap_or_default());
    text += &format!(
        "its certificate is signed by its own authority, {ca}\n  \
           SHA-256 {fingerprint}\n\
         discovery images carry that authority; where other clients run, copy the file and trust it:\n  \
           muster --hub {url} --ca {ca} status    or    export MUSTER_CA={ca}\n  \
           curl --cacert {ca} {url}/health\n",
        url = ready.url
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        tls: TlsArgs,
    }

    fn chosen(args: &[&str]) -> Outcome<TlsChoice> {
        let args = std::iter::once("muster").chain(args.iter().copied());
        let parsed = Command::try_parse_from(args).expect("valid flags");
        parsed.tls.chosen().map(|chosen| chosen.tls)
    }

    #[test]
    fn a_certificate_needs_its_key_and_there_is_only_one() {
        assert_eq!(chosen(&[]), Ok(TlsChoice::Off));
        assert_eq!(
            chosen(&["--tls-cert=", "--tls-key="]),
            Ok(TlsChoice::Off),
            "empty variables"
        );
        assert_eq!(chosen(&["--tls-self-signed"]), Ok(TlsChoice::SelfSigned));
        let files = Files {
            cert: "a".into(),
            key: "b".into(),
        };
        assert_eq!(
            chosen(&["--tls-cert=a", "--tls-key=b"]),
            Ok(TlsChoice::Files(files))
        );
        for (args, missing) in [
            (&["--tls-cert=a"][..], "--tls-key"),
            (&["--tls-key=b"], "--tls-cert"),
            (&["--tls-self-signed", "--tls-key=b"], "--tls-cert"),
            (
                &["--tls-self-signed", "--tls-cert=a", "--tls-key=b"],
                "--tls-self-signed",
            ),
        ] {
            let told = chosen(args).unwrap_err().cause;
            assert!(told.contains(missing), "{told}");
        }
    }
}
