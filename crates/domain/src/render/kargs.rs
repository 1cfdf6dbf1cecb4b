//! Kernel arguments of a discovery boot: ours per architecture, then those of the InfraEnv.

use crate::input::kernel_arguments::KernelArgument;

/// Screen and second serial port; they are also handed to the installed system.
const CONSOLES: &str = "console=tty1 console=ttyS1,115200n8";

/// What a network boot passes besides initrd and rootfs address. A mainframe has its own console and none of these, and
/// an InfraEnv that names a console means it: Linux takes the first serial port it is given, and stays silent on a
/// machine that does not have it.
pub fn discovery(architecture: &str, appended: &[String]) -> Vec<String> {
    let mut list: Vec<String> = [
        "random.trust_cpu=on",
        "rd.luks.options=discard",
        "ignition.firstboot",
        "ignition.platform.id=metal",
    ]
    .map(str::to_owned)
    .to_vec();
    let names_console = appended
        .iter()
        .flat_map(|argument| argument.split_whitespace())
        .any(|word| word.starts_with("console="));
    if architecture != "s390x" && !names_console {
        list.push(CONSOLES.to_owned());
        list.push(format!("coreos.inst.persistent-kargs=\"{CONSOLES}\""));
    }
    list
}

/// Values to append, from the stored JSON text; an absent or unreadable one means none.
pub fn appended(kernel_arguments: Option<&str>) -> Vec<String> {
    let list: Vec<KernelArgument> = kernel_arguments
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    list.into_iter()
        .filter(|argument| argument.operation == "append")
        .map(|argument| argument.value)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infra_env_that_names_a_console_gets_no_other() {
        let own = discovery(
            "x86_64",
            &["quiet".to_owned(), "console=ttyS0,115200n8".to_owned()],
        );
        assert!(!own.iter().any(|word| word.contains("ttyS1")), "{own:?}");
        let usual = discovery("x86_64", &["quiet".to_owned()]);
        assert!(
            usual.iter().any(|word| word.contains("console=ttyS1")),
            "{usual:?}"
        );
    }
}
