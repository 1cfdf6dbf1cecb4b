//! A tar archive of one file, for the memory disk GRUB starts from.

/// No owner, no date: equal input gives equal bytes.
pub(super) fn single(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(content.len() as u64);
    let mut archive = tar::Builder::new(Vec::new());
    let written = archive
        .append_data(&mut header, name, content)
        .and_then(|()| archive.into_inner());
    written.expect("our name is a short one, and writing to memory does not fail")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    const BLOCK: usize = 512;

    #[test]
    fn the_sum_is_that_of_the_header_with_blanks_in_its_place() {
        let archive = single("boot/grub/grub.cfg", b"normal\n");
        assert_eq!(archive.len(), 4 * BLOCK);
        let mut header = archive[..BLOCK].to_vec();
        let sum = std::str::from_utf8(&header[148..155]).unwrap().to_owned();
        header[148..156].fill(b' ');
        let counted: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        assert_eq!(u32::from_str_radix(&sum, 8).unwrap(), counted);
        assert_eq!(&archive[124..136], b"00000000007\0");
    }

    #[test]
    fn the_file_is_read_back() {
        let bytes = single("boot/grub/grub.cfg", b"normal\n");
        assert_eq!(bytes, single("boot/grub/grub.cfg", b"normal\n"));
        let mut archive = tar::Archive::new(&bytes[..]);
        let mut files = archive.entries().unwrap();
        let mut file = files.next().unwrap().unwrap();
        assert_eq!(&*file.path_bytes(), b"boot/grub/grub.cfg");
        let mut content = String::new();
        file.read_to_string(&mut content).unwrap();
        assert_eq!(content, "normal\n");
        assert!(files.next().is_none());
    }
}
