//! Sizes as people read and type them: `20GiB`, `512M`, `3.4 MiB`.

const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

/// `4096`, `20G`, `20GiB`, `1.5T`; all units are powers of 1024, a plain number counts bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size; write 512MiB or 20GiB");
    let trimmed = text.trim();
    let digits = trimmed
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim().to_ascii_uppercase();
    let power = match unit.as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 1,
        "M" | "MB" | "MIB" => 2,
        "G" | "GB" | "GIB" => 3,
        "T" | "TB" | "TIB" => 4,
        _ => return Err(wrong()),
    };
    let factor = 1024_u64.pow(power);
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(wrong);
    }
    let bytes = number.parse::<f64>().map_err(|_| wrong())? * factor as f64;
    // Nobody means an exact byte with a fraction of a gibibyte.
    if bytes < u64::MAX as f64 {
        Ok(bytes as u64)
    } else {
        Err(wrong())
    }
}

/// In the largest unit that fits, with three digits.
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    let decimals = usize::from(unit > 0 && value < 99.95);
    format!("{value:.decimals$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_or_without_a_unit() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("20GiB"), Ok(20 << 30));
        assert_eq!(parse_size("20 g"), Ok(20 << 30));
        assert_eq!(parse_size("1.5K"), Ok(1536));
        for wrong in ["", "many", "-1", "1X", "1.2.3", "99999999999T"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_shown_in_one_unit() {
        let shown = [0, 1023, 1024, 1_234_567, 1 << 30, u64::MAX].map(size);
        assert_eq!(
            shown,
            ["0 B", "1023 B", "1.0 KiB", "1.2 MiB", "1.0 GiB", "16777216 TiB"]
        );
    }
}
