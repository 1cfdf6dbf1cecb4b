//! A tar archive of one file, for the memory disk GRUB starts from.

const BLOCK: usize = 512;

/// The name has less than 100 bytes. No owner, no date: equal input gives equal bytes.
pub(super) fn single(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", content.len()));
    put(136, "00000000000");
    // The sum counts itself as blanks; a plain file follows.
    put(148, "        0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend_from_slice(content);
    // Two empty blocks are the end.
    archive.resize(archive.len().next_multiple_of(BLOCK) + 2 * BLOCK, 0);
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_the_header_with_blanks_in_its_place() {
        let archive = single("boot/grub/grub.cfg", b"normal\n");
        assert_eq!(archive.len(), 4 * BLOCK);
        let mut header = archive[..BLOCK].to_vec();
        let sum = std::str::from_utf8(&header[148..154]).unwrap().to_owned();
        header[148..156].fill(b' ');
        let counted: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        assert_eq!(u32::from_str_radix(&sum, 8).unwrap(), counted);
        assert_eq!(&archive[124..136], b"00000000007\0");
    }
}
