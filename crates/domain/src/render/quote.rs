//! Quoting of values for the places they are written to: systemd units and shell scripts.

/// Inside double quotes of a unit file: `%` and `$` would be expanded, quotes and backslashes read.
pub fn systemd(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    for c in value.chars() {
        match c {
            '\\' | '"' => text.extend(['\\', c]),
            '%' | '$' => text.extend([c, c]),
            // A line break would start a new setting.
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
    text
}

/// Inside double quotes of a file that `EnvironmentFile=` names: nothing is expanded, these four are escaped.
pub fn environment_file(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    for c in value.chars() {
        match c {
            '\\' | '"' | '`' | '$' => text.extend(['\\', c]),
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
    text
}

/// As one word of a shell command.
pub fn shell(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}
