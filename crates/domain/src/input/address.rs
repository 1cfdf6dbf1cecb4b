//! Addresses and networks as text: first the coarse form a schema asks for, then the real meaning.

use std::net::IpAddr;

use ipnet::IpNet;

use super::error::{Checked, Invalid, quoted};

/// An IP address. Text that has not even the form of one is a schema violation; 300.1.1.1 is a rule violation.
pub fn ip(field: &str, text: &str) -> Checked<IpAddr> {
    let fix = "give an IPv4 or IPv6 address";
    if !looks_like_ip(text) {
        return Err(Invalid::schema(
            field,
            format!("is not an IP address ({})", quoted(text)),
            fix,
        ));
    }
    text.parse().map_err(|_| {
        Invalid::rule(
            field,
            format!("holds the impossible address {}", quoted(text)),
            fix,
        )
    })
}

/// A network such as 192.168.7.0/24, without host bits.
pub fn network(field: &str, text: &str) -> Checked<IpNet> {
    let fix = "give a network as address/prefix, for example 192.168.7.0/24";
    let form = text.split_once('/').is_some_and(|(address, prefix)| {
        !address.is_empty() && looks_like_ip(address) && looks_like_prefix(address, prefix)
    });
    if !form {
        return Err(Invalid::schema(
            field,
            format!("is not a network ({})", quoted(text)),
            fix,
        ));
    }
    let net: IpNet = text.parse().map_err(|_| {
        Invalid::rule(
            field,
            format!("holds the impossible network {}", quoted(text)),
            fix,
        )
    })?;
    if net.addr() != net.network() {
        return Err(Invalid::rule(
            field,
            format!("has host bits set ({text})"),
            format!("write the network itself, {}", net.trunc()),
        ));
    }
    Ok(net)
}

pub fn mac(field: &str, text: &str) -> Checked<String> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let right = parts.len() == 6
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))
        && !(text.contains(':') && text.contains('-'));
    if right {
        return Ok(parts.join(":").to_ascii_lowercase());
    }
    Err(Invalid::rule(
        field,
        format!("is not a MAC address ({})", quoted(text)),
        "write six pairs of hex digits, like 52:54:00:12:34:56",
    ))
}

fn looks_like_ip(text: &str) -> bool {
    let octets: Vec<&str> = text.split('.').collect();
    let v4 = octets.len() == 4
        && octets
            .iter()
            .all(|o| (1..=3).contains(&o.len()) && o.bytes().all(|b| b.is_ascii_digit()));
    let v6 = text.matches(':').count() >= 2
        && text
            .bytes()
            .all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
    v4 || v6
}

fn looks_like_prefix(address: &str, prefix: &str) -> bool {
    let most = if address.contains(':') { 128 } else { 32 };
    prefix.len() <= 3
        && !prefix.is_empty()
        && prefix.bytes().all(|b| b.is_ascii_digit())
        && prefix.parse::<u16>().is_ok_and(|bits| bits <= most)
}
