//! How a closed set of words is written down, and a word of the wire that may be newer than this program.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A closed set of words.
pub trait Words: Copy + Eq + 'static {
    const ALL: &'static [Self];

    fn word(self) -> &'static str;

    fn from_word(word: &str) -> Option<Self>;
}

/// An enum whose values are fixed words; each word is written once.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$arm:meta])* $variant:ident = $word:tt),+ $(,)? }) => {
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            $crate::serde::Serialize, $crate::serde::Deserialize,
        )]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        $(#[$meta])*
        #[serde(crate = "muster_vocabulary::serde")]
        pub enum $name {
            $($(#[$arm])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl $crate::Words for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn word(self) -> &'static str {
                self.word()
            }

            fn from_word(word: &str) -> Option<Self> {
                Self::from_word(word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::from_word(word).ok_or_else($crate::UnknownWord::of::<Self>)
            }
        }
    };
}

/// Questions about the words of a set that are answered yes or no. Every answer names every word, so a new word has to be
/// given one.
macro_rules! questions {
    ($set:ident: $($(#[$doc:meta])* $question:ident { yes: $($yes:ident)+; no: $($no:ident)+; })+) => {
        impl $set {
            $($(#[$doc])*
            pub fn $question(self) -> bool {
                match self {
                    $(Self::$yes)|+ => true,
                    $(Self::$no)|+ => false,
                }
            })+
        }
    };
}
pub(crate) use questions;

/// A text that is no word of a set; it tells which are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    known: Vec<&'static str>,
}

impl UnknownWord {
    pub fn of<T: Words>() -> Self {
        Self {
            known: T::ALL.iter().map(|word| word.word()).collect(),
        }
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is not a known word: use ")?;
        for (at, word) in self.known.iter().enumerate() {
            let before = match at {
                0 => "",
                at if at + 1 == self.known.len() => " or ",
                _ => ", ",
            };
            write!(f, "{before}`{word}`")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownWord {}

/// A word that a hub tells. A newer hub may know more words than this program: such a word is kept as it came, shown as it
/// came, and answers no question. The empty text stands for no word at all.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Word<T>(Spelling<T>);

/// Only [`Word`] makes one, so a known word is never kept as a text.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Spelling<T> {
    Known(T),
    Other(Box<str>),
}

impl<T: Words> Word<T> {
    /// `None` when there is no word, or one that this program does not know.
    pub fn known(&self) -> Option<T> {
        match &self.0 {
            Spelling::Known(word) => Some(*word),
            Spelling::Other(_) => None,
        }
    }

    /// As the wire spells it.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Spelling::Known(word) => word.word(),
            Spelling::Other(text) => text,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }

    /// The answer to a question about the word; no for a word that is not known.
    pub fn is(&self, question: impl FnOnce(T) -> bool) -> bool {
        self.known().is_some_and(question)
    }
}

impl<T: Words> Default for Word<T> {
    fn default() -> Self {
        Self::read("")
    }
}

impl<T: Words> From<T> for Word<T> {
    fn from(word: T) -> Self {
        Self(Spelling::Known(word))
    }
}

impl<T: Words> From<Option<T>> for Word<T> {
    fn from(word: Option<T>) -> Self {
        word.map(Self::from).unwrap_or_default()
    }
}

impl<T: Words> Word<T> {
    /// Reads any text.
    pub fn read(text: &str) -> Self {
        match T::from_word(text) {
            Some(word) => Self(Spelling::Known(word)),
            None => Self(Spelling::Other(text.into())),
        }
    }
}

impl<T: Words> From<&str> for Word<T> {
    fn from(text: &str) -> Self {
        Self::read(text)
    }
}

impl<T: Words> PartialEq<str> for Word<T> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl<T: Words> PartialEq<&str> for Word<T> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl<T: Words> PartialEq<T> for Word<T> {
    fn eq(&self, other: &T) -> bool {
        self.known() == Some(*other)
    }
}

impl<T: Words> fmt::Debug for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<T: Words> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: Words> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(std::marker::PhantomData<T>);

        impl<T: Words> serde::de::Visitor<'_> for Reader<T> {
            type Value = Word<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Word::read(text))
            }
        }

        deserializer.deserialize_str(Reader(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use crate::{CheckStatus, HostStatus, Role, Word};

    #[test]
    fn a_word_of_a_newer_hub_is_kept_and_answers_no_question() {
        let told: Word<HostStatus> = serde_json::from_str(r#""dozing""#).unwrap();
        assert_eq!((told.known(), told.as_str()), (None, "dozing"));
        assert!(!told.is(HostStatus::is_installing));
        assert_eq!(serde_json::to_string(&told).unwrap(), r#""dozing""#);
    }

    #[test]
    fn a_known_word_is_the_same_however_it_was_made() {
        let read: Word<Role> = serde_json::from_str(r#""master""#).unwrap();
        assert_eq!(read, Word::<Role>::from(Role::Master));
        assert_eq!(read, Word::<Role>::read("master"));
        assert_eq!(read, Role::Master);
        assert_ne!(Word::<Role>::read("masters"), Role::Master);
    }

    #[test]
    fn no_word_is_empty() {
        let none: Word<Role> = None.into();
        assert!(none.is_empty() && none == Word::<Role>::default() && none.known().is_none());
        assert!(!Word::<Role>::from(Role::Worker).is_empty());
    }

    #[test]
    fn an_unknown_word_is_answered_with_those_that_are_known() {
        let error = "perhaps".parse::<CheckStatus>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "is not a known word: use `success`, `failure`, `pending`, `error` or `disabled`"
        );
    }
}
