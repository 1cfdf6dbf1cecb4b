//! Base64url as tokens are written in: without padding, and with one spelling for each value.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;

/// What is wrong with a text that is no base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misspelled {
    Padding,
    Alphabet,
    Length,
    /// Bits that mean nothing are set: another spelling of a value that has one already.
    SpareBits,
}

impl fmt::Display for Misspelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Padding => "ends in `=`",
            Self::Alphabet => "holds a character that base64url does not have",
            Self::Length => "ends in the middle of a byte",
            Self::SpareBits => "is not spelled in the one right way",
        })
    }
}

pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub fn decode(text: &str) -> Result<Vec<u8>, Misspelled> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let bare = text.trim_end_matches('=');
    if !bare.bytes().all(known) {
        return Err(Misspelled::Alphabet);
    }
    if bare.len() != text.len() {
        return Err(Misspelled::Padding);
    }
    if text.len() % 4 == 1 {
        return Err(Misspelled::Length);
    }
    // What is left that can be wrong are the bits of the last character.
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Misspelled::SpareBits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_misspelling_is_told_apart() {
        for (text, wrong) in [
            ("QQ==", Misspelled::Padding),
            ("Q=Q", Misspelled::Alphabet),
            ("QQ+_", Misspelled::Alphabet),
            ("QQ/_", Misspelled::Alphabet),
            ("QQ QQ", Misspelled::Alphabet),
            ("QQ\n", Misspelled::Alphabet),
            ("QUJDR", Misspelled::Length),
            ("QR", Misspelled::SpareBits),
            ("QUF", Misspelled::SpareBits),
        ] {
            assert_eq!(decode(text), Err(wrong), "{text:?}");
        }
        assert_eq!(decode(""), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn bytes_survive_and_have_one_spelling(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(decode(&encode(&bytes)), Ok(bytes));
        }

        #[test]
        fn a_text_that_is_read_is_the_only_spelling(text in "[A-Za-z0-9_=+-]{0,12}") {
            if let Ok(bytes) = decode(&text) {
                prop_assert_eq!(encode(bytes), text);
            }
        }
    }
}
