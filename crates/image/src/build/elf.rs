//! The little we read of ELF files: what a kernel module says about itself, and whether a program is static.

/// What a kernel module says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ModuleInfo {
    /// Modules whose symbols it uses.
    pub depends: Vec<String>,
    /// Names or aliases that should be loaded before.
    pub wishes: Vec<String>,
    pub aliases: Vec<String>,
    /// The kernel it was made for.
    pub kernel_version: String,
}

/// `None`: it is not a module.
pub(super) fn module_info(elf: &[u8]) -> Option<ModuleInfo> {
    let entries = section(elf, b".modinfo")?.split(|byte| *byte == 0);
    let mut info = ModuleInfo::default();
    for entry in entries.filter_map(|entry| std::str::from_utf8(entry).ok()) {
        let Some((key, value)) = entry.split_once('=') else {
            continue;
        };
        match key {
            "depends" => info.depends.extend(words(value, ',')),
            "alias" => info.aliases.push(value.to_owned()),
            "vermagic" => info.kernel_version = words(value, ' ').next().unwrap_or_default(),
            "softdep" => {
                let before = value.split("post:").next().unwrap_or_default();
                if let Some((_, names)) = before.split_once("pre:") {
                    info.wishes.extend(words(names, ' '));
                }
            }
            _ => {}
        }
    }
    Some(info)
}

fn words(text: &str, separator: char) -> impl Iterator<Item = String> {
    text.split(separator)
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
}

/// A program for x86_64.
pub(super) fn is_program(elf: &[u8]) -> bool {
    elf.starts_with(b"\x7fELF\x02\x01") && number(elf, 0x12, 2) == Some(62)
}

/// Whether it runs without a loader and libraries beside it.
pub(super) fn is_static(elf: &[u8]) -> bool {
    const INTERPRETER: u64 = 3;
    let parts = || {
        let (start, size) = (number(elf, 0x20, 8)?, number(elf, 0x36, 2)?);
        let count = number(elf, 0x38, 2)?;
        Some((0..count).map(move |part| start + part * size))
    };
    parts().is_some_and(|mut parts| parts.all(|at| number(elf, at, 4) != Some(INTERPRETER)))
}

fn section<'a>(elf: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size) = (number(elf, 0x28, 8)?, number(elf, 0x3a, 2)?);
    let (count, names) = (number(elf, 0x3c, 2)?, number(elf, 0x3e, 2)?);
    let content = |index: u64| {
        let header = index.checked_mul(size)?.checked_add(table)?;
        let (at, len) = (number(elf, header + 0x18, 8)?, number(elf, header + 0x20, 8)?);
        elf.get(usize::try_from(at).ok()?..usize::try_from(at.checked_add(len)?).ok()?)
    };
    let names = content(names)?;
    let is_it = |index: &u64| {
        let at = number(elf, table + index * size, 4).and_then(|at| usize::try_from(at).ok());
        let rest = at.and_then(|at| names.get(at..)).unwrap_or_default();
        rest.split(|byte| *byte == 0).next() == Some(name)
    };
    (0..count).find(is_it).and_then(content)
}

fn number(bytes: &[u8], at: u64, len: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let mut whole = [0; 8];
    whole[..len].copy_from_slice(bytes.get(at..at.checked_add(len)?)?);
    Some(u64::from_le_bytes(whole))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A module with this information and nothing else.
    pub fn module(info: &[&str]) -> Vec<u8> {
        let names = b"\0.modinfo\0.shstrtab\0";
        let content = info.join("\0") + "\0";
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[0x12] = 62;
        let (names_at, content_at) = (64, 64 + names.len());
        let table = (content_at + content.len()).next_multiple_of(8);
        elf.extend_from_slice(names);
        elf.extend_from_slice(content.as_bytes());
        elf.resize(table + 3 * 64, 0);
        let mut put = |at: usize, value: usize| {
            elf[at..at + 4].copy_from_slice(&u32::try_from(value).unwrap().to_le_bytes())
        };
        put(0x28, table);
        for (index, name, at, len) in [(1, 1, content_at, content.len()), (2, 10, names_at, names.len())] {
            put(table + index * 64, name);
            put(table + index * 64 + 0x18, at);
            put(table + index * 64 + 0x20, len);
        }
        elf[0x3a] = 64;
        elf[0x3c] = 3;
        elf[0x3e] = 2;
        elf
    }

    #[test]
    fn a_module_tells_its_needs_and_names() {
        let elf = module(&[
            "license=GPL",
            "alias=pci:v00001AF4d*",
            "alias=virtio:d00000001v*",
            "depends=virtio,net_failover",
            "softdep=pre: crc32c aes post: other",
            "vermagic=6.1.0-37-amd64 SMP preempt mod_unload modversions ",
        ]);
        let info = module_info(&elf).unwrap();
        assert_eq!(info.depends, ["virtio", "net_failover"]);
        assert_eq!(info.wishes, ["crc32c", "aes"]);
        assert_eq!(info.aliases.len(), 2);
        assert_eq!(info.kernel_version, "6.1.0-37-amd64");
        assert!(is_program(&elf) && is_static(&elf));
    }

    #[test]
    fn what_is_cut_off_is_no_module() {
        let elf = module(&["depends="]);
        assert_eq!(module_info(&elf[..elf.len() - 100]), None);
        assert_eq!(module_info(b"\x7fELF"), None);
    }

    #[test]
    fn a_program_that_asks_for_a_loader_is_not_static() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(is_program(&own) && !is_static(&own));
    }
}
