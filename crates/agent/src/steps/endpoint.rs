//! Whether servers that an installed system will need can be reached from here.

use super::{Context, json};
use crate::http::{Trust, client};
use anyhow::Context as _;
use muster_contract::v2::agent::args::{ApiVipCheckArgs, TangCheckArgs};
use muster_contract::v2::agent::replies::{ApiVipCheckReply, TangCheckReply, TangServerReply};
use serde::Deserialize;
use serde_json::{Value, json as object};

pub fn api_vip(context: &Context, args: &ApiVipCheckArgs) -> anyhow::Result<String> {
    let fetched = fetch_ignition(context, args);
    json(&match fetched {
        Ok(ignition) => ApiVipCheckReply {
            is_success: true,
            url: args.url.clone(),
            ignition,
            ..ApiVipCheckReply::default()
        },
        Err(error) => ApiVipCheckReply {
            url: args.url.clone(),
            download_error: format!("{error:#}"),
            ..ApiVipCheckReply::default()
        },
    })
}

fn trust(context: &Context, extra: Option<&str>) -> Trust {
    Trust {
        insecure: false,
        extra: extra.unwrap_or_default().to_owned(),
        ..Trust::of(&context.settings)
    }
}

fn fetch_ignition(context: &Context, args: &ApiVipCheckArgs) -> anyhow::Result<String> {
    let http = client(&trust(context, args.ca_certificate.as_deref()))?;
    let mut request = http.get(&args.url).header(
        "Accept",
        "application/vnd.coreos.ignition+json; version=3.2.0, */*;q=0.1",
    );
    if let Some(token) = args
        .ignition_endpoint_token
        .as_ref()
        .filter(|token| !token.0.is_empty())
    {
        request = request.header("Authorization", format!("Bearer {}", token.0));
    }
    for header in args.request_headers.iter().flatten() {
        request = request.header(&header.key, &header.value);
    }
    let mut answer = request.call()?;
    anyhow::ensure!(
        answer.status().is_success(),
        "the server answers {}",
        answer.status()
    );
    let body: Value =
        serde_json::from_reader(answer.body_mut().as_reader()).context("the answer is not JSON")?;
    anyhow::ensure!(
        body.get("ignition").is_some(),
        "the answer is not an ignition config"
    );
    Ok(without_secrets(&body).to_string())
}

/// Hubs look at the version and at disk encryption; the rest of the config is nobody's business.
fn without_secrets(config: &Value) -> Value {
    let mut kept = object!({"ignition": {"version": config["ignition"]["version"]}});
    if let Some(luks) = config["storage"].get("luks") {
        kept["storage"] = object!({"luks": luks});
    }
    kept
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TangServer {
    url: String,
    #[serde(alias = "Url", alias = "URL")]
    _other: Option<String>,
}

/// Of an advertisement, in both of its forms.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Advertisement {
    payload: String,
    signatures: Vec<muster_contract::v2::agent::replies::TangSignature>,
    protected: String,
    signature: String,
}

pub fn tang(context: &Context, args: &TangCheckArgs) -> anyhow::Result<String> {
    let servers: Vec<TangServer> =
        serde_json::from_str(&args.tang_servers).context("cannot read the list of servers")?;
    let http = client(&trust(context, None))?;
    let mut answers = Vec::new();
    for server in servers {
        let url = server.url;
        let advertised = http.get(format!("{}/adv", url.trim_end_matches('/'))).call();
        let mut answer = advertised.with_context(|| format!("cannot reach {url}"))?;
        anyhow::ensure!(answer.status().is_success(), "{url} answers {}", answer.status());
        let body: Advertisement = serde_json::from_reader(answer.body_mut().as_reader())
            .with_context(|| format!("cannot read the answer of {url}"))?;
        answers.push(server_reply(url, body));
    }
    json(&TangCheckReply {
        is_success: true,
        tang_server_response: answers,
    })
}

fn server_reply(tang_url: String, mut body: Advertisement) -> TangServerReply {
    if body.signatures.is_empty() && !body.signature.is_empty() {
        let (protected, signature) = (body.protected, body.signature);
        body.signatures
            .push(muster_contract::v2::agent::replies::TangSignature { protected, signature });
    }
    TangServerReply {
        tang_url,
        payload: body.payload,
        signatures: body.signatures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_ignition_only_version_and_encryption_are_told() {
        let config = object!({"ignition": {"version": "3.2.0"}, "passwd": {"users": ["secret"]},
            "storage": {"luks": [{"name": "root"}], "files": ["secret"]}});
        let kept = without_secrets(&config).to_string();
        assert!(kept.contains("luks") && !kept.contains("secret"), "{kept}");
    }
}
