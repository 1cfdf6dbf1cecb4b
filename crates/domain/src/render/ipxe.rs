//! iPXE scripts: one that boots discovery, one that asks again with the machine's MAC.

use super::kargs;
use crate::InfraEnvId;

/// What the boot script is made of.
#[derive(Clone, Debug)]
pub struct Boot<'a> {
    /// Where kernel, initrd and rootfs are served.
    pub image_service_url: &'a str,
    pub infra_env: InfraEnvId,
    /// Version of the OS image.
    pub version: &'a str,
    pub architecture: &'a str,
    /// The InfraEnv's kernel arguments, the stored JSON text.
    pub kernel_arguments: Option<&'a str>,
    /// Proof of the right to fetch the initrd, such as ("api_key", "…"); it is the one artifact with secrets in it.
    pub proof: Option<(&'a str, &'a str)>,
}

/// `initrd=initrd` is what UEFI firmware needs to find the initrd again.
pub fn boot_script(boot: &Boot<'_>) -> String {
    let base = boot.image_service_url.trim_end_matches('/');
    let query = format!(
        "arch={}&version={}",
        escape(boot.architecture),
        escape(boot.version)
    );
    let proof = boot
        .proof
        .map(|(name, value)| format!("&{name}={}", escape(value)))
        .unwrap_or_default();
    let rootfs = format!("{base}/boot-artifacts/rootfs?{query}");
    let mut words = vec![
        format!("{base}/boot-artifacts/kernel?{query}"),
        "initrd=initrd".to_owned(),
        format!("coreos.live.rootfs_url={rootfs}"),
    ];
    let appended = kargs::appended(boot.kernel_arguments);
    words.extend(kargs::discovery(boot.architecture, &appended));
    words.extend(appended);
    format!(
        "#!ipxe\ninitrd --name initrd {base}/images/{}/pxe-initrd?{query}{proof}\nkernel {}\nboot\n",
        boot.infra_env,
        words.join(" ")
    )
}

/// For `boot-order-control` without a MAC: iPXE knows the MAC and asks again. `url` is the address of that request,
/// with its query.
pub fn chain_script(url: &str) -> String {
    let mark = if url.contains('?') { '&' } else { '?' };
    format!("#!ipxe\nchain {url}{mark}mac=${{net0/mac}}\n")
}

/// Percent-encodes what would end the value early.
fn escape(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    value
        .bytes()
        .map(|b| {
            if plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}
