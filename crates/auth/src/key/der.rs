//! DER, as far as keys of P-256 need it: what is read has one spelling and nothing behind it.

pub const INTEGER: u8 = 0x02;
pub const BIT_STRING: u8 = 0x03;
pub const OCTET_STRING: u8 = 0x04;
pub const OBJECT_ID: u8 = 0x06;
pub const SEQUENCE: u8 = 0x30;
/// `[0]` and `[1]`, with something in them.
pub const FIRST: u8 = 0xa0;
pub const SECOND: u8 = 0xa1;
/// `[1]` in place of a bit string.
pub const SECOND_BITS: u8 = 0x81;

/// Something is not written as it has to be.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

/// What is left to read.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The contents of the next element.
    pub fn element(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        self.optional(tag)?.ok_or(Malformed)
    }

    /// The contents of the next element, if it has this tag.
    pub fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, Malformed> {
        let Some((_, rest)) = self.0.split_first().filter(|(first, _)| **first == tag) else {
            return Ok(None);
        };
        let (length, rest) = length(rest)?;
        let (contents, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(Some(contents))
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<(), Malformed> {
        match self.0 {
            [] => Ok(()),
            [..] => Err(Malformed),
        }
    }
}

/// The shortest form only, and no more than 64 KiB.
fn length(bytes: &[u8]) -> Result<(usize, &[u8]), Malformed> {
    match bytes {
        [short @ ..=0x7f, rest @ ..] => Ok((usize::from(*short), rest)),
        [0x81, one @ 0x80..=0xff, rest @ ..] => Ok((usize::from(*one), rest)),
        [0x82, high @ 1..=0xff, low, rest @ ..] => Ok((usize::from(u16::from_be_bytes([*high, *low])), rest)),
        [..] => Err(Malformed),
    }
}

/// One element; its contents are those of a key, so two bytes are enough for their length.
pub fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let [.., high, low] = contents.len().to_be_bytes();
    let mut bytes = match (high, low) {
        (0, ..0x80) => vec![tag, low],
        (0, _) => vec![tag, 0x81, low],
        (_, _) => vec![tag, 0x82, high, low],
    };
    bytes.extend(contents);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn other_spellings_of_a_length_are_refused() {
        for bytes in [
            &[OCTET_STRING][..],
            &[OCTET_STRING, 0x80, 0, 0],
            &[OCTET_STRING, 0x81, 0x01, 0],
            &[OCTET_STRING, 0x82, 0x00, 0x80],
            &[OCTET_STRING, 0x83, 0x00, 0x00, 0x01, 0],
            &[OCTET_STRING, 0x02, 0],
        ] {
            assert_eq!(
                Reader::new(bytes).element(OCTET_STRING),
                Err(Malformed),
                "{bytes:x?}"
            );
        }
        assert_eq!(Reader::new(&[INTEGER, 1, 1]).optional(SEQUENCE), Ok(None));
    }

    proptest! {
        #[test]
        fn an_element_is_read_back(contents in proptest::collection::vec(any::<u8>(), 0..600)) {
            let bytes = element(OCTET_STRING, &[&contents]);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.element(OCTET_STRING), Ok(&contents[..]));
            prop_assert_eq!(reader.end(), Ok(()));
        }
    }
}
