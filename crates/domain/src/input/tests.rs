//! Tables of what is refused and what is taken.

mod bounds;
mod recorded;
mod settings;
mod topology;

use super::Checked;
use super::platform::NetworkTypeSetting;

fn text(list: &[&str]) -> Vec<String> {
    list.iter().map(|item| (*item).to_owned()).collect()
}

fn unit<T>(answer: Checked<T>) -> Checked {
    answer.map(|_| ())
}

fn ip(text: &str) -> std::net::IpAddr {
    text.parse().unwrap()
}

const SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZAo=","email":"a@example.com"}}}"#;
const ED25519: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA a@example.com";
const TOY_DSS: &str = "ssh-dss AAAAB3NzaC1kc3MAAAAEAAAABwAAAAQAAAAHAAAABAAAAAcAAAAEAAAABw== dummy";

fn network_setting() -> NetworkTypeSetting<'static> {
    NetworkTypeSetting {
        version: "4.20.33",
        single_node: false,
        vip_dhcp_allocation: false,
        user_managed_networking: false,
        any_ipv6: false,
    }
}
