//! The one list of nouns and of their migrations, and what it takes to hold a row without knowing which noun it is.

pub(crate) mod clusters;
pub(crate) mod hosts;
pub(crate) mod infra_envs;
#[cfg(test)]
mod shelf;

use crate::changes::{Change, ChangeOp, Scope};
use crate::document::Document;
use crate::row::{self, Row, RowId, RowState, Rows, Table};
use crate::sql::Value;
use crate::{RowKind, Store, StoreError};
use jiff::Timestamp;
use muster_domain::cluster::Cluster;
use muster_domain::host::Host;
use muster_domain::infra_env::InfraEnv;
use sqlx::AnyConnection;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use uuid::Uuid;

/// Does something with a row, whichever noun it is of.
pub trait Visit {
    type Output;
    fn row<R: Row>(self, row: R) -> Self::Output;
}

/// Does something with a key, whichever noun it names.
pub trait VisitKey {
    type Output;
    fn key<K: RowId>(self, key: K) -> Self::Output;
}

macro_rules! nouns {
    ($($(#[$when:meta])* $Noun:ident($Row:ty) in $rows:ident, told as $word:literal;)*) => {
        /// Which noun a row is of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ChangeKind { $($(#[$when])* $Noun),* }

        impl ChangeKind {
            pub const ALL: &[Self] = &[$($(#[$when])* Self::$Noun),*];

            pub fn word(self) -> &'static str {
                match self { $($(#[$when])* Self::$Noun => $word),* }
            }

            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($(#[$when])* $word => Some(Self::$Noun),)*
                    _ => None,
                }
            }
        }

        /// Names a row of any noun.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RowKey { $($(#[$when])* $Noun(<$Row as Row>::Key)),* }

        impl RowKey {
            pub fn kind(self) -> ChangeKind {
                match self { $($(#[$when])* Self::$Noun(_) => ChangeKind::$Noun),* }
            }

            /// The row that a change of the feed is about; `None` if it does not say.
            pub fn of(change: &Change) -> Option<Self> {
                match change.kind {
                    $($(#[$when])* ChangeKind::$Noun => <$Row>::key_of(change).map(Self::$Noun)),*
                }
            }

            /// The same among rows that cannot be read.
            pub(crate) fn row_kind(self) -> RowKind {
                match self { $($(#[$when])* Self::$Noun(_) => <$Row as Document>::KIND),* }
            }

            pub fn visit<V: VisitKey>(self, visitor: V) -> V::Output {
                match self { $($(#[$when])* Self::$Noun(key) => visitor.key(key)),* }
            }

            pub(crate) fn push(self, values: &mut Vec<Value>) {
                match self { $($(#[$when])* Self::$Noun(key) => <$Row>::push_key(key, values)),* }
            }

            fn feed_id(self) -> Uuid {
                match self { $($(#[$when])* Self::$Noun(key) => <$Row>::feed_id(key)),* }
            }

            fn scope_of_deleted(self, references: &[RowKey]) -> Scope {
                match self { $($(#[$when])* Self::$Noun(key) => <$Row>::scope_of_deleted(key, references)),* }
            }
        }

        impl fmt::Display for RowKey {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $($(#[$when])* Self::$Noun(key) => key.fmt(f)),* }
            }
        }

        /// A row of any noun.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(
            clippy::large_enum_variant,
            reason = "a commit holds one or a few, nearly all of them of the large nouns"
        )]
        pub enum Record { $($(#[$when])* $Noun($Row)),* }

        impl Record {
            pub fn key(&self) -> RowKey {
                match self { $($(#[$when])* Self::$Noun(row) => RowKey::$Noun(row.key())),* }
            }

            pub fn revision(&self) -> i64 {
                match self { $($(#[$when])* Self::$Noun(row) => Row::revision(row)),* }
            }

            pub fn visit<V: Visit>(self, visitor: V) -> V::Output {
                match self { $($(#[$when])* Self::$Noun(row) => visitor.row(row)),* }
            }

            pub(crate) fn set_revision(&mut self, revision: i64) {
                match self { $($(#[$when])* Self::$Noun(row) => row.set_revision(revision)),* }
            }

            pub(crate) fn references(&self) -> Vec<RowKey> {
                match self { $($(#[$when])* Self::$Noun(row) => row.references()),* }
            }

            fn scope(&self) -> Scope {
                match self { $($(#[$when])* Self::$Noun(row) => row.scope()),* }
            }

            fn status(&self) -> &'static str {
                match self { $($(#[$when])* Self::$Noun(row) => Row::status(row)),* }
            }
        }

        $(
            $(#[$when])*
            impl RowId for <$Row as Row>::Key {
                type Row = $Row;
            }

            $(#[$when])*
            impl From<<$Row as Row>::Key> for RowKey {
                fn from(key: <$Row as Row>::Key) -> Self {
                    Self::$Noun(key)
                }
            }

            $(#[$when])*
            impl From<$Row> for Record {
                fn from(row: $Row) -> Self {
                    Self::$Noun(row)
                }
            }
        )*

        /// Where each noun is.
        pub(crate) const TABLES: &[Table] = &[$($(#[$when])* <$Row as Row>::TABLE),*];

        /// Rows of all nouns to write together.
        #[derive(Default)]
        pub(crate) struct Batch { $($(#[$when])* $rows: Rows<$Row>),* }

        impl Batch {
            pub fn put(&mut self, record: &Record, revision: i64) -> Result<(), StoreError> {
                match record { $($(#[$when])* Record::$Noun(row) => self.$rows.put(row, revision)),* }
            }

            pub fn delete(&mut self, key: RowKey, expected: i64, last: i64, at: Timestamp) {
                match key { $($(#[$when])* RowKey::$Noun(key) => self.$rows.delete(key, expected, last, at)),* }
            }

            pub async fn write(self, connection: &mut AnyConnection) -> Result<(), StoreError> {
                $($(#[$when])* self.$rows.write(connection).await?;)*
                Ok(())
            }
        }

        /// How these rows are, and where the numbers of those ended that are to be inserted and were there before.
        pub(crate) async fn states(
            connection: &mut AnyConnection,
            keys: &BTreeSet<RowKey>,
            inserted: &BTreeSet<RowKey>,
        ) -> Result<HashMap<RowKey, RowState>, StoreError> {
            let mut states = HashMap::with_capacity(keys.len());
            $(
                $(#[$when])*
                {
                    let of = |key: &RowKey| if let RowKey::$Noun(key) = key { Some(*key) } else { None };
                    let wanted: Vec<_> = keys.iter().filter_map(of).collect();
                    states.extend(row::states::<$Row>(connection, &wanted).await?);
                    let wanted: Vec<_> = inserted.iter().filter_map(of).collect();
                    for (key, buried) in row::buried::<$Row>(connection, &wanted).await? {
                        states.entry(key).or_default().buried = buried;
                    }
                }
            )*
            Ok(states)
        }

        impl Store {
            /// A noun's rows, a piece at a time in the order of their keys.
            pub async fn load_any(
                &self,
                kind: ChangeKind,
                after: Option<RowKey>,
                limit: u32,
            ) -> Result<Vec<Record>, StoreError> {
                Ok(match kind {
                    $($(#[$when])* ChangeKind::$Noun => {
                        let of = |key| if let RowKey::$Noun(key) = key { Some(key) } else { None };
                        let rows = self.load::<$Row>(after.and_then(of), limit).await?;
                        rows.into_iter().map(Record::$Noun).collect()
                    }),*
                })
            }

            /// A row of whichever noun.
            pub async fn find_any(&self, key: RowKey) -> Result<Option<Record>, StoreError> {
                Ok(match key {
                    $($(#[$when])* RowKey::$Noun(key) => self.find(key).await?.map(Record::$Noun)),*
                })
            }
        }
    };
}

nouns! {
    Host(Host) in hosts, told as "host";
    Cluster(Cluster) in clusters, told as "cluster";
    InfraEnv(InfraEnv) in infra_envs, told as "infra-env";
    #[cfg(test)]
    Shelf(shelf::Shelf) in shelves, told as "shelf";
}

/// What made their tables, in the order of their numbers.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_tables.sql"),
    include_str!("../migrations/0002_files.sql"),
    include_str!("../migrations/0003_without_due_times.sql"),
    include_str!("../migrations/0004_document_versions.sql"),
    include_str!("../migrations/0005_changes_of_any_noun.sql"),
];

impl RowKey {
    pub(crate) fn stale(self) -> StoreError {
        StoreError::Stale(self)
    }
}

/// What followers hear of a row that was written.
pub(crate) fn put_change(record: &Record, revision: i64, at: Timestamp) -> Change {
    let scope = record.scope();
    Change {
        seq: 0,
        at,
        kind: record.key().kind(),
        id: record.key().feed_id(),
        infra_env: scope.infra_env,
        cluster: scope.cluster,
        op: ChangeOp::Put,
        revision,
        status: record.status().to_owned(),
    }
}

/// What followers hear of a row that is gone.
pub(crate) fn delete_change(key: RowKey, before: &RowState, revision: i64, at: Timestamp) -> Change {
    let scope = key.scope_of_deleted(&before.references);
    Change {
        seq: 0,
        at,
        kind: key.kind(),
        id: key.feed_id(),
        infra_env: scope.infra_env,
        cluster: scope.cluster,
        op: ChangeOp::Delete,
        revision,
        status: String::new(),
    }
}
