//! SSH public keys as they stand in an authorized_keys file, one per line.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::error::{Checked, Invalid};

/// Key types we let in, with the fewest bytes a key of that type can have.
///
/// The floor keeps out toy keys and cut-off pastes; sshd is the final judge of the rest.
const TYPES: [(&str, usize); 6] = [
    ("ssh-ed25519", 48),
    ("ssh-rsa", 130),
    ("ecdsa-sha2-nistp256", 100),
    ("ecdsa-sha2-nistp384", 130),
    ("ecdsa-sha2-nistp521", 160),
    ("ssh-dss", 400),
];

/// Padding is often lost when keys are copied, and sshd does not need it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Every non-empty line must be a public key; returns them trimmed. `field` is `ssh_public_key` or `ssh_authorized_key`.
pub fn ssh_keys(field: &str, text: &str) -> Checked<Vec<String>> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| ssh_key(field, line).map(|()| line.to_owned()))
        .collect()
}

fn ssh_key(field: &str, line: &str) -> Checked {
    if line.contains("PRIVATE KEY") {
        return Err(Invalid::rule(
            field,
            "is a private key",
            "paste the public half, the file that ends in .pub",
        ));
    }
    let mut words = line.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let Some((_, least)) = TYPES.iter().find(|(name, _)| *name == kind) else {
        let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
        return Err(Invalid::rule(
            field,
            "does not begin with a known key type",
            format!("give keys of type {}, one per line", names.join(", ")),
        ));
    };
    let blob = words
        .next()
        .and_then(|word| LENIENT.decode(word).ok())
        .unwrap_or_default();
    if !blob.starts_with(&header(kind)) {
        return Err(Invalid::rule(
            field,
            format!("has no {kind} key after the type"),
            "copy the whole line of the .pub file",
        ));
    }
    if blob.len() < *least {
        return Err(Invalid::rule(
            field,
            format!("holds a {kind} key that is cut off or too weak"),
            "copy the whole line of the .pub file, or make a new key with ssh-keygen -t ed25519",
        ));
    }
    Ok(())
}

/// The first field of an SSH key blob: the type's name behind its length.
fn header(kind: &str) -> Vec<u8> {
    let length = u32::try_from(kind.len()).unwrap_or_default();
    [&length.to_be_bytes()[..], kind.as_bytes()].concat()
}
