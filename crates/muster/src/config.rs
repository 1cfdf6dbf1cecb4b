//! Settings from the environment and from files, put under the flags they belong to.
//!
//! Both become part of the command tree before anything is parsed: the environment as clap's own fallback, files as
//! default values. So a flag beats the environment, the environment beats files, and files beat built-in defaults.

use crate::exit::{Failure, Outcome};
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Names under which deployments of the reference service already keep these settings, and one directory for all that
/// is fetched for images.
const ALIASES: [(&str, &str); 19] = [
    ("cache-dir", "MUSTER_IMAGE_CACHE"),
    ("os-images", "OS_IMAGES"),
    ("release-images", "RELEASE_IMAGES"),
    ("hw-requirements", "HW_VALIDATOR_REQUIREMENTS"),
    ("agent-image", "AGENT_DOCKER_IMAGE"),
    ("upgrade-agents", "ENABLE_UPGRADE_AGENT"),
    ("installer-image", "INSTALLER_IMAGE"),
    ("controller-image", "CONTROLLER_IMAGE"),
    ("must-gather-images", "MUST_GATHER_IMAGES"),
    ("disabled-host-checks", "DISABLED_HOST_VALIDATIONS"),
    ("disabled-cluster-checks", "DISABLED_CLUSTER_VALIDATIONS"),
    ("disabled-steps", "DISABLED_STEPS"),
    ("default-ntp", "NTP_DEFAULT_SERVER"),
    ("single-node-dns", "ENABLE_SINGLE_NODE_DNSMASQ"),
    ("service-ca", "SERVICE_CA_CERT_PATH"),
    ("skip-cert-verification", "SKIP_CERT_VERIFICATION"),
    ("ironic-agent-image", "IRONIC_AGENT_IMAGE"),
    ("ironic-agent-image-arm", "IRONIC_AGENT_IMAGE_ARM"),
    ("pause-provisioned", "PAUSE_PROVISIONED_BMHS"),
];

/// Flags that a file or a variable cannot set.
const ONLY_FLAGS: [&str; 3] = ["help", "version", "config"];

/// Gives every flag of the tree its environment variable: `--data-dir` is `MUSTER_DATA_DIR`.
pub fn with_environment(command: Command, is_set: &dyn Fn(&str) -> bool) -> Command {
    let command = command.mut_args(|arg| match arg.get_long() {
        Some("help" | "version") | None => arg,
        Some(long) => {
            let name = variable(long, is_set);
            let arg = arg.env(name).hide_env_values(true);
            // `MUSTER_WAIT=1` and `=yes` are as good as `=true`.
            if is_switch(&arg) {
                arg.value_parser(clap::builder::BoolishValueParser::new())
            } else {
                arg
            }
        }
    });
    command.mut_subcommands(|sub| with_environment(sub, is_set))
}

fn variable(long: &str, is_set: &dyn Fn(&str) -> bool) -> String {
    let own = format!("MUSTER_{}", long.replace('-', "_").to_uppercase());
    let alias = ALIASES
        .iter()
        .find(|(flag, _)| *flag == long)
        .map(|(_, name)| *name);
    match alias {
        Some(alias) if !is_set(&own) && is_set(alias) => alias.to_owned(),
        Some(_) | None => own,
    }
}

fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse)
}

/// The files to read, least important first.
pub fn files(args: &[OsString]) -> Vec<(PathBuf, bool)> {
    let named =
        named_file(args).or_else(|| std::env::var_os("MUSTER_CONFIG").filter(|name| !name.is_empty()));
    if let Some(named) = named {
        return vec![(named.into(), true)];
    }
    let home = std::env::var_os("XDG_CONFIG_HOME")
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".config")));
    let mut files: Vec<(PathBuf, bool)> = home
        .into_iter()
        .map(|dir| (dir.join("muster/config.toml"), false))
        .collect();
    files.push(("muster.toml".into(), false));
    files
}

/// `--config` has to be known before the rest can be parsed.
fn named_file(args: &[OsString]) -> Option<OsString> {
    let mut args = args.iter().skip(1).take_while(|arg| *arg != "--");
    while let Some(arg) = args.next() {
        if arg == "--config" {
            return args.next().cloned();
        }
        if let Some(file) = arg.to_str().and_then(|arg| arg.strip_prefix("--config=")) {
            return Some(file.into());
        }
    }
    None
}

/// Reads the files and makes their values the defaults of the flags they name.
pub fn with_files(mut command: Command, files: &[(PathBuf, bool)]) -> Outcome<Command> {
    for (path, must_exist) in files {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => continue,
            Err(error) => return Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
        };
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| bad(path, &format!("is not TOML: {}", error.message())))?;
        command = apply(command, &table, "", path)?;
    }
    Ok(command)
}

fn apply(mut command: Command, table: &Table, section: &str, path: &Path) -> Outcome<Command> {
    for (key, value) in table {
        let full = if section.is_empty() {
            key.clone()
        } else {
            format!("{section}.{key}")
        };
        let name = key.replace('_', "-");
        let arg = command
            .get_arguments()
            .find(|arg| arg.get_long() == Some(&name))
            .map(|arg| arg.get_id().clone());
        if let Some(id) = arg.filter(|_| !ONLY_FLAGS.contains(&name.as_str())) {
            let values =
                texts(value).ok_or_else(|| bad(path, &format!("has no usable value for `{full}`")))?;
            command = command.mut_arg(id, |arg| with_default(arg, values));
        } else if let (Value::Table(inner), Some(sub)) = (value, command.find_subcommand(&name).cloned()) {
            let sub = apply(sub, inner, &full, path)?;
            command = command.mut_subcommand(&name, |_| sub);
        } else {
            return Err(bad(path, &format!("has an unknown key `{full}`")).next(
                "keys are the names of flags, in a section per subcommand such as [serve] or [host.bind]",
            ));
        }
    }
    Ok(command)
}

fn with_default(arg: Arg, values: Vec<String>) -> Arg {
    let arg = arg.required(false);
    if matches!(arg.get_action(), ArgAction::Append) {
        return arg.default_values(values);
    }
    match <[String; 1]>::try_from(values) {
        Ok([value]) => arg.default_value(value),
        // A list for a flag that takes one value, such as the images: written as JSON.
        Err(values) => arg.default_value(format!("[{}]", values.join(","))),
    }
}

/// The value as one would type it; a list gives several, tables inside of it become JSON.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            Some(vec![value.to_string()])
        }
        Value::Table(_) => serde_json::to_string(value).ok().map(|json| vec![json]),
        Value::Array(items) if items.iter().all(Value::is_table) => {
            serde_json::to_string(items).ok().map(|json| vec![json])
        }
        Value::Array(items) => items.iter().map(|item| Some(texts(item)?.concat())).collect(),
    }
}

fn bad(path: &Path, what: &str) -> Failure {
    Failure::usage(format!("the config file {} {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command::new("muster")
            .arg(Arg::new("hub").long("hub").default_value("built-in"))
            .subcommand(
                Command::new("serve")
                    .arg(Arg::new("data_dir").long("data-dir").required(true))
                    .arg(Arg::new("os_images").long("os-images"))
                    .arg(Arg::new("fault").long("fault").action(ArgAction::Append))
                    .arg(Arg::new("wait").long("wait").action(ArgAction::SetTrue)),
            )
    }

    fn parse(file: &str, args: &[&str]) -> Result<clap::ArgMatches, String> {
        let table: Table = file.parse().unwrap();
        let command =
            apply(command(), &table, "", Path::new("muster.toml")).map_err(|failure| failure.cause)?;
        Ok(command.try_get_matches_from(args).unwrap())
    }

    #[test]
    fn a_file_gives_defaults_and_flags_beat_them() {
        let file = "hub = 'http://a'\n[serve]\ndata_dir = 'x'\nwait = true\nfault = ['p', 'q']";
        let matches = parse(file, &["muster", "serve", "--data-dir", "y"]).unwrap();
        assert_eq!(matches.get_one::<String>("hub").unwrap(), "http://a");
        let (_, serve) = matches.subcommand().unwrap();
        assert_eq!(serve.get_one::<String>("data_dir").unwrap(), "y");
        assert!(serve.get_flag("wait"));
        assert_eq!(
            serve.get_many::<String>("fault").unwrap().collect::<Vec<_>>(),
            ["p", "q"]
        );
    }

    #[test]
    fn tables_become_json() {
        let file = "[serve]\ndata-dir = 'x'\n[[serve.os-images]]\nversion = '1'";
        let matches = parse(file, &["muster", "serve"]).unwrap();
        let (_, serve) = matches.subcommand().unwrap();
        assert_eq!(
            serve.get_one::<String>("os_images").unwrap(),
            r#"[{"version":"1"}]"#
        );
    }

    #[test]
    fn an_unknown_key_is_named_with_its_section() {
        let error = parse("[serve]\nlisten_on = 'x'", &["muster", "serve"]).unwrap_err();
        assert!(
            error.contains("`serve.listen_on`") && error.contains("muster.toml"),
            "{error}"
        );
        assert!(
            parse("config = 'x'", &["muster", "serve"]).is_err(),
            "a file cannot name another file"
        );
    }

    #[test]
    fn the_names_of_the_reference_are_used_when_ours_are_not_set() {
        let set = |names: &'static [&'static str]| move |name: &str| names.contains(&name);
        assert_eq!(variable("os-images", &set(&[])), "MUSTER_OS_IMAGES");
        assert_eq!(variable("os-images", &set(&["OS_IMAGES"])), "OS_IMAGES");
        assert_eq!(
            variable("os-images", &set(&["OS_IMAGES", "MUSTER_OS_IMAGES"])),
            "MUSTER_OS_IMAGES"
        );
        assert_eq!(
            variable("agent-image", &set(&["AGENT_DOCKER_IMAGE"])),
            "AGENT_DOCKER_IMAGE"
        );
        assert_eq!(
            variable("pause-provisioned", &set(&["PAUSE_PROVISIONED_BMHS"])),
            "PAUSE_PROVISIONED_BMHS"
        );
        assert_eq!(variable("data-dir", &set(&[])), "MUSTER_DATA_DIR");
    }

    #[test]
    fn the_config_flag_is_found_in_both_spellings_and_not_after_a_double_dash() {
        let find = |args: &[&str]| named_file(&args.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(find(&["muster", "--config", "a", "serve"]), Some("a".into()));
        assert_eq!(find(&["muster", "serve", "--config=b"]), Some("b".into()));
        assert_eq!(find(&["muster", "serve", "--", "--config=b"]), None);
    }
}
