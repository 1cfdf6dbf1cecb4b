//! What a noun is: a row with a document, guarded by a revision, announced by the feed and kept in the memory of hubs.

use crate::changes::{Change, Scope};
use crate::document::{self, Document};
use crate::nouns::{ChangeKind, Record, RowKey};
use crate::sql::{self, Columns, Value};
use crate::unreadable::{self, Raw, Unreadable, readable};
use crate::{RowKind, Store, StoreError};
use jiff::Timestamp;
use muster_domain::id::{ClusterId, HostKey};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::sync::Arc;
use uuid::Uuid;

/// A noun. Everything else about storing, feeding and reloading it is the same for all of them.
pub trait Row: Document + Clone + PartialEq + Debug + Into<Record> + Send + Sync + 'static {
    type Key: RowId<Row = Self>;

    const NOUN: ChangeKind;
    const TABLE: Table;

    fn key(&self) -> Self::Key;

    /// The one it was read at; 0 before it is written for the first time.
    fn revision(&self) -> i64;

    fn set_revision(&mut self, revision: i64);

    fn created_at(&self) -> Timestamp;

    /// The key as the table has it, in the order of its columns.
    fn push_key(key: Self::Key, values: &mut Vec<Value>);

    /// From a row that starts with the columns of the key.
    fn read_key(row: &AnyRow) -> Result<Self::Key, StoreError>;

    /// The table's own columns, in their order.
    fn push_columns(&self, values: &mut Vec<Value>);

    /// The host that it is about, for whoever asks why that host is missing.
    fn host_of(_key: Self::Key) -> Option<HostKey> {
        None
    }

    /// Rows that must be there, and cannot be deleted as long as this one names them: those of `TABLE.references`.
    fn references(&self) -> Vec<RowKey> {
        Vec::new()
    }

    /// By what else memory finds it.
    fn index_keys(&self) -> Vec<RowKey> {
        self.references()
    }

    /// The cluster whose findings depend on it.
    fn concerns(&self) -> Option<ClusterId> {
        None
    }

    /// Its id in the feed.
    fn feed_id(key: Self::Key) -> Uuid;

    /// Which row a change of the feed is about; `None` if it does not say.
    fn key_of(change: &Change) -> Option<Self::Key>;

    /// Where a follower of the feed looks for it.
    fn scope(&self) -> Scope;

    /// The same once it is gone; what it referred to until then helps to tell.
    fn scope_of_deleted(key: Self::Key, references: &[RowKey]) -> Scope;

    /// Its word of status, for followers of the feed.
    fn status(&self) -> &'static str {
        ""
    }
}

/// What names a row; each noun has a type of its own for it. The list of nouns implements it.
pub trait RowId: Copy + Ord + Hash + Debug + Display + Into<RowKey> + Send + Sync + 'static {
    type Row: Row<Key = Self>;
}

/// Where rows of a noun are. Every table also has `revision`, `created_at`, `version` and `doc`.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    pub key: &'static [&'static str],
    /// What queries look for outside of the document.
    pub columns: &'static [&'static str],
    pub references: &'static [Reference],
    /// Tables with the same key whose rows go with the row.
    pub dependents: &'static [&'static str],
    /// Where deleted rows are remembered, with the same key.
    pub tombstones: Option<&'static str>,
}

/// A column that names a row of another noun by its id.
#[derive(Debug, Clone, Copy)]
pub struct Reference {
    pub column: &'static str,
    pub row: fn(Uuid) -> RowKey,
}

impl Table {
    /// `t.a, t.b`
    pub(crate) fn keys_of(&self, alias: &str) -> String {
        self.key
            .iter()
            .map(|column| format!("{alias}.{column}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The key, the references, revision, version and document.
    fn raw_columns(&self) -> String {
        let references: String = self
            .references
            .iter()
            .map(|reference| format!("t.{}, ", reference.column))
            .collect();
        format!("{}, {references}t.revision, t.version, t.doc", self.keys_of("t"))
    }

    /// `a = $1 and b = $2`
    pub(crate) fn key_equals(&self) -> String {
        self.key
            .iter()
            .zip(1..)
            .map(|(column, number)| format!("{column} = ${number}"))
            .collect::<Vec<_>>()
            .join(" and ")
    }

    /// `t.a = k.column1 and t.b = k.column2`, to join a list of keys.
    pub(crate) fn joins(&self) -> String {
        self.key
            .iter()
            .zip(1..)
            .map(|(column, number)| format!("t.{column} = k.column{number}"))
            .collect::<Vec<_>>()
            .join(" and ")
    }
}

impl Store {
    /// An error if it is there and cannot be read.
    pub async fn find<K: RowId>(&self, key: K) -> Result<Option<K::Row>, StoreError> {
        let mut values = Vec::with_capacity(K::Row::TABLE.key.len());
        K::Row::push_key(key, &mut values);
        let unreadable = &self.inner.unreadable;
        match self
            .raw_row::<K::Row>(values, key.to_string(), K::Row::host_of(key))
            .await?
        {
            Some(raw) => raw.read(unreadable).map(Some),
            None => {
                unreadable.forget(<K::Row as Document>::KIND, &key.to_string());
                if K::Row::host_of(key).is_some() {
                    unreadable.forget(RowKind::Report, &key.to_string());
                }
                Ok(None)
            }
        }
    }

    /// In the order they were made, without those that cannot be read.
    pub async fn list<R: Row>(&self) -> Result<Vec<R>, StoreError> {
        let mut all: Vec<R> = Vec::new();
        loop {
            let mut piece = self.load::<R>(all.last().map(Row::key), PIECE).await?;
            if piece.is_empty() {
                all.sort_by_key(|row| (row.created_at(), row.key()));
                return Ok(all);
            }
            all.append(&mut piece);
        }
    }

    /// A noun's rows, a piece at a time in the order of their keys, without those that cannot be read. Nothing comes after
    /// an empty piece.
    pub async fn load<R: Row>(&self, after: Option<R::Key>, limit: u32) -> Result<Vec<R>, StoreError> {
        let mut after = after.map(|key| {
            let mut values = Vec::new();
            R::push_key(key, &mut values);
            values
        });
        loop {
            let (raw, next) = match self.raw_rows::<R>(after.clone(), limit).await {
                Err(error) if error.is_undecodable() => self.raw_one_by_one::<R>(after, limit).await?,
                piece => piece?,
            };
            let rows = parsed(raw, &self.inner.unreadable).await?;
            match next {
                Some(next) if rows.is_empty() => after = Some(next),
                Some(_) | None => return Ok(rows),
            }
        }
    }

    async fn raw_row<R: Row>(
        &self,
        key: Vec<Value>,
        id: String,
        host: Option<HostKey>,
    ) -> Result<Option<Raw>, StoreError> {
        let table = R::TABLE;
        let columns = table.raw_columns();
        let text = format!(
            "select {columns} from {} t where {}",
            table.name,
            table.key_equals()
        );
        match self.inner.readers.row(sql::query(text, key)).await {
            Ok(row) => Ok(row.as_ref().map(raw::<R>)),
            Err(error) if error.is_undecodable() => {
                let broken = Raw::broken(id);
                Ok(Some(Raw { host, ..broken }))
            }
            Err(error) => Err(error),
        }
    }

    async fn raw_rows<R: Row>(
        &self,
        after: Option<Vec<Value>>,
        limit: u32,
    ) -> Result<(Vec<Raw>, Option<Vec<Value>>), StoreError> {
        let rows = self.piece::<R>(&R::TABLE.raw_columns(), after, limit).await?;
        let next = next_piece::<R>(&rows, limit)?;
        Ok((rows.iter().map(raw::<R>).collect(), next))
    }

    /// A value that cannot be taken over keeps its neighbours from being read together with it.
    async fn raw_one_by_one<R: Row>(
        &self,
        after: Option<Vec<Value>>,
        limit: u32,
    ) -> Result<(Vec<Raw>, Option<Vec<Value>>), StoreError> {
        let rows = self.piece::<R>(&R::TABLE.keys_of("t"), after, limit).await?;
        let mut all = Vec::with_capacity(rows.len());
        for row in &rows {
            let (key, id) = (key_text::<R>(row)?, row_name::<R>(row));
            let host = R::read_key(row).ok().and_then(R::host_of);
            all.extend(self.raw_row::<R>(key, id, host).await?);
        }
        Ok((all, next_piece::<R>(&rows, limit)?))
    }

    /// However long that takes: a hub that starts reads everything.
    async fn piece<R: Row>(
        &self,
        columns: &str,
        after: Option<Vec<Value>>,
        limit: u32,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let keys = R::TABLE.keys_of("t");
        let mut values = after.unwrap_or_default();
        let marks: Vec<_> = (1..=values.len()).map(|number| format!("${number}")).collect();
        let beyond = match marks.is_empty() {
            true => String::new(),
            false => format!("where ({keys}) > ({})", marks.join(", ")),
        };
        values.push(Value::Int(limit.into()));
        let text = format!(
            "select {columns} from {} t {beyond} order by {keys} limit ${}",
            R::TABLE.name,
            values.len()
        );
        Ok(sql::query(text, values).fetch_all(self.readers()).await?)
    }
}

/// Rows of a list that are read at once.
const PIECE: u32 = 5_000;

/// A key as the table has it, even if it is none.
fn key_text<R: Row>(row: &AnyRow) -> Result<Vec<Value>, StoreError> {
    (0..R::TABLE.key.len())
        .map(|column| Ok(Value::Text(row.text(column)?.to_owned())))
        .collect()
}

/// The same for people.
fn row_name<R: Row>(row: &AnyRow) -> String {
    let parts = (0..R::TABLE.key.len()).map(|column| unreadable::name(row, column));
    parts.collect::<Vec<_>>().join("/")
}

/// Where to go on; nowhere after a piece that is not full.
fn next_piece<R: Row>(rows: &[AnyRow], limit: u32) -> Result<Option<Vec<Value>>, StoreError> {
    let last = rows.last().filter(|_| rows.len() >= limit as usize);
    last.map(key_text::<R>).transpose()
}

/// From a row of [`Table::raw_columns`].
fn raw<R: Row>(row: &AnyRow) -> Raw {
    let (keys, references) = (R::TABLE.key.len(), R::TABLE.references);
    let cluster = references.iter().enumerate().find_map(|(at, reference)| {
        let id: Uuid = row.maybe_parsed(keys + at, reference.column).ok()??;
        if let RowKey::Cluster(id) = (reference.row)(id) {
            Some(id)
        } else {
            None
        }
    });
    Raw {
        host: R::read_key(row).ok().and_then(R::host_of),
        cluster,
        ..Raw::under(row_name::<R>(row), row, keys + references.len())
    }
}

/// Parsing is most of the work when a hub starts, so all cores share it.
async fn parsed<R: Row>(mut raw: Vec<Raw>, unreadable: &Arc<Unreadable>) -> Result<Vec<R>, StoreError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = raw.len().div_ceil(cores).max(1);
    let mut shares = Vec::with_capacity(cores);
    while !raw.is_empty() {
        let rest = raw.split_off(share.min(raw.len()));
        let part = std::mem::replace(&mut raw, rest);
        let unreadable = unreadable.clone();
        shares.push(tokio::task::spawn_blocking(move || {
            part.iter()
                .filter_map(|raw| readable(raw.read(&unreadable)).transpose())
                .collect::<Result<Vec<_>, _>>()
        }));
    }
    let mut rows = Vec::new();
    for share in shares {
        let part = share.await.map_err(|_| StoreError::closed())?;
        rows.append(&mut part?);
    }
    Ok(rows)
}

/// A row as the transaction of the writer sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowState {
    /// 0: there is no such row.
    pub revision: i64,
    pub references: Vec<RowKey>,
    /// Where a deleted row's numbers ended. Its next life goes on from there, so that nobody who still holds the
    /// old one is taken for up to date.
    pub buried: i64,
}

/// The rows with these keys that are there.
pub(crate) async fn states<R: Row>(
    connection: &mut AnyConnection,
    keys: &[R::Key],
) -> Result<Vec<(RowKey, RowState)>, StoreError> {
    let table = R::TABLE;
    let references: String = table
        .references
        .iter()
        .map(|reference| format!(", t.{}", reference.column))
        .collect();
    // A cross join keeps SQLite from walking the table instead of the keys.
    let head = format!("select {}, t.revision{references} from (", table.keys_of("t"));
    let tail = format!(") k cross join {} t where {}", table.name, table.joins());
    let rows = sql::fetch_all(connection, &head, table.key.len(), key_values::<R>(keys), &tail).await?;
    let (revision, first) = (table.key.len(), table.key.len() + 1);
    rows.iter()
        .map(|row| {
            let mut references = Vec::with_capacity(table.references.len());
            for (at, reference) in table.references.iter().enumerate() {
                let id: Option<Uuid> = row.maybe_parsed(first + at, reference.column)?;
                references.extend(id.map(reference.row));
            }
            let state = RowState {
                revision: row.int(revision)?,
                references,
                buried: 0,
            };
            Ok((R::read_key(row)?.into(), state))
        })
        .collect()
}

/// Where the numbers of those of these rows ended that were deleted.
pub(crate) async fn buried<R: Row>(
    connection: &mut AnyConnection,
    keys: &[R::Key],
) -> Result<Vec<(RowKey, i64)>, StoreError> {
    let table = R::TABLE;
    let Some(tombstones) = table.tombstones else {
        return Ok(Vec::new());
    };
    let head = format!("select {}, t.revision from (", table.keys_of("t"));
    let tail = format!(") k cross join {tombstones} t where {}", table.joins());
    let rows = sql::fetch_all(connection, &head, table.key.len(), key_values::<R>(keys), &tail).await?;
    rows.iter()
        .map(|row| Ok((R::read_key(row)?.into(), row.int(table.key.len())?)))
        .collect()
}

fn key_values<R: Row>(keys: &[R::Key]) -> Vec<Value> {
    let mut values = Vec::with_capacity(keys.len() * R::TABLE.key.len());
    keys.iter().for_each(|key| R::push_key(*key, &mut values));
    values
}

/// Rows of one noun to write together, with what goes with them; each key at most once.
pub(crate) struct Rows<R: Row> {
    put: usize,
    puts: Vec<Value>,
    deletes: Vec<(R::Key, i64)>,
    buried: Vec<Value>,
    risen: Vec<R::Key>,
}

impl<R: Row> Default for Rows<R> {
    fn default() -> Self {
        Self {
            put: 0,
            puts: Vec::new(),
            deletes: Vec::new(),
            buried: Vec::new(),
            risen: Vec::new(),
        }
    }
}

impl<R: Row> Rows<R> {
    pub fn put(&mut self, row: &R, revision: i64) -> Result<(), StoreError> {
        let [version, document] = document::written(row)?;
        R::push_key(row.key(), &mut self.puts);
        row.push_columns(&mut self.puts);
        self.puts.extend([
            Value::Int(revision),
            Value::time(row.created_at()),
            version,
            document,
        ]);
        self.put += 1;
        if row.revision() == 0 && revision > 1 {
            self.risen.push(row.key());
        }
        Ok(())
    }

    /// `expected` is the revision it has, `last` the one under which the feed announces its end.
    pub fn delete(&mut self, key: R::Key, expected: i64, last: i64, at: Timestamp) {
        R::push_key(key, &mut self.buried);
        self.buried.extend([Value::Int(last), Value::time(at)]);
        self.deletes.push((key, expected));
    }

    pub async fn write(mut self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let table = R::TABLE;
        self.write_deletes(connection, &table).await?;
        let Self { put, puts, risen, .. } = self;
        let (keys, columns) = (table.key.join(", "), table.columns);
        let own: String = columns.iter().map(|column| format!(", {column}")).collect();
        let replaced: String = columns
            .iter()
            .map(|column| format!("{column} = excluded.{column}, "))
            .collect();
        let head = format!(
            "insert into {} ({keys}{own}, revision, created_at, version, doc)",
            table.name
        );
        let tail = format!(
            " on conflict ({keys}) do update set {replaced}revision = excluded.revision, version = excluded.version,
              doc = excluded.doc
              where {}.revision = excluded.revision - 1",
            table.name
        );
        let width = table.key.len() + columns.len() + 4;
        let met = sql::execute_all(connection, &head, width, puts, &tail).await?;
        expect_rows(R::NOUN.word(), put, met)?;
        if let Some(tombstones) = table.tombstones {
            let head = format!("delete from {tombstones} where ({keys}) in (");
            sql::execute_all(connection, &head, table.key.len(), key_values::<R>(&risen), ")").await?;
        }
        Ok(())
    }

    async fn write_deletes(
        &mut self,
        connection: &mut AnyConnection,
        table: &Table,
    ) -> Result<(), StoreError> {
        let (deletes, buried) = (
            std::mem::take(&mut self.deletes),
            std::mem::take(&mut self.buried),
        );
        if deletes.is_empty() {
            return Ok(());
        }
        let mut gone = Vec::with_capacity(deletes.len());
        let text = format!(
            "delete from {} where {} and revision = ${}",
            table.name,
            table.key_equals(),
            table.key.len() + 1
        );
        for (key, expected) in deletes {
            // One at a time: SQLite would walk the whole table for a list that names the revision too.
            let mut values = Vec::with_capacity(table.key.len() + 1);
            R::push_key(key, &mut values);
            values.push(Value::Int(expected));
            let done = sql::query(text.clone(), values).execute(&mut *connection).await?;
            expect_rows(R::NOUN.word(), 1, done.rows_affected())?;
            gone.push(key);
        }
        let keys = table.key.join(", ");
        for dependent in table.dependents {
            let head = format!("delete from {dependent} where ({keys}) in (");
            sql::execute_all(connection, &head, table.key.len(), key_values::<R>(&gone), ")").await?;
        }
        if let Some(tombstones) = table.tombstones {
            let head = format!("insert into {tombstones} ({keys}, revision, deleted_at)");
            let tail = format!(
                " on conflict ({keys}) do update set revision = excluded.revision, deleted_at = excluded.deleted_at"
            );
            sql::execute_all(connection, &head, table.key.len() + 2, buried, &tail).await?;
        }
        Ok(())
    }
}

/// Fails the batch when a guarded statement met another number of rows than the revisions promised.
pub(crate) fn expect_rows(what: &str, wanted: usize, met: u64) -> Result<(), StoreError> {
    if u64::try_from(wanted).is_ok_and(|wanted| wanted == met) {
        return Ok(());
    }
    Err(StoreError::corrupt(
        format!("set of {what} rows"),
        format!("{met} of {wanted} were as read; who else writes?"),
    ))
}
