//! Boot menus as text: finds the lines that start a kernel, and makes room for arguments behind them.

/// Where boot menus are found; the first of each kind that exists is what firmware reads.
pub(super) const PATHS: &[&str] = &[
    "EFI/redhat/grub.cfg",
    "EFI/fedora/grub.cfg",
    "EFI/centos/grub.cfg",
    "EFI/BOOT/grub.cfg",
    "boot/grub/grub.cfg",
    "boot/grub2/grub.cfg",
    "isolinux/isolinux.cfg",
    "isolinux/txt.cfg",
    "isolinux/live.cfg",
    "syslinux/syslinux.cfg",
];

/// As much as a CoreOS image leaves free.
pub(super) const ROOM: u64 = 1024;

/// A menu with room behind every kernel line.
pub(super) struct Roomy {
    pub text: Vec<u8>,
    /// Where the room begins, once for each line.
    pub places: Vec<u64>,
}

/// `keep` says which words of a kernel line stay.
pub(super) fn roomy(text: &str, keep: impl Fn(&str) -> bool) -> Roomy {
    let mut menu = Roomy {
        text: Vec::with_capacity(text.len() + 4096),
        places: Vec::new(),
    };
    for line in text.split_inclusive('\n') {
        if !starts_kernel(line) {
            menu.text.extend_from_slice(line.as_bytes());
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let words: Vec<&str> = line.split_whitespace().filter(|word| keep(word)).collect();
        menu.text
            .extend_from_slice(format!("{indent}{} ", words.join(" ")).as_bytes());
        menu.places.push(menu.text.len() as u64);
        menu.text.resize(menu.text.len() + 1024, b' ');
        menu.text.push(b'\n');
    }
    menu
}

fn starts_kernel(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default().to_ascii_lowercase();
    let has_more = words.next().is_some();
    has_more && matches!(first.as_str(), "linux" | "linuxefi" | "linux16" | "append")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_line_gets_room_and_nothing_else_changes() {
        let menu = roomy(
            "timeout 5\n  linux /vmlinuz a b=c\n  initrd /i\nappend x\nappend\n",
            |word| word != "a",
        );
        let text = String::from_utf8(menu.text).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(
            lines,
            [
                "timeout 5",
                "  linux /vmlinuz b=c",
                "  initrd /i",
                "append x",
                "append"
            ]
        );
        assert_eq!(menu.places.len(), 2);
        for place in menu.places {
            let place = usize::try_from(place).unwrap();
            assert!(text[place..place + 1024].chars().all(|c| c == ' '));
            assert_eq!(&text[place + 1024..=place + 1024], "\n");
        }
    }
}
