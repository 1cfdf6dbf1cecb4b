//! Which serial port a kernel talks on.

const SERIAL: &str = "console=ttyS";

/// Linux takes the first serial port it is given and no other, so one that is appended later would not count: the one
/// the line has goes.
pub(crate) fn without_overruled(line: &str, appended: &[String]) -> String {
    let mut added = appended.iter().flat_map(|argument| argument.split_whitespace());
    if !added.any(|word| word.starts_with(SERIAL)) {
        return line.to_owned();
    }
    let words: Vec<&str> = line
        .split_whitespace()
        .filter(|word| !word.starts_with(SERIAL))
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_port_that_is_named_later_is_the_only_one() {
        let line = "console=tty0 console=ttyS0,115200n8 panic=30";
        let with = |added: &str| without_overruled(line, &[added.to_owned()]);
        assert_eq!(with("quiet"), line);
        assert_eq!(with("console=tty1"), line);
        assert_eq!(with("a console=ttyS1,9600"), "console=tty0 panic=30");
    }
}
