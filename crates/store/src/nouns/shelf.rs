//! A noun for tests only: proof that a noun is its own file, its migration and one line in the list of nouns.

use crate::changes::{Change, Scope};
use crate::document::{Document, Step};
use crate::nouns::{ChangeKind, RowKey};
use crate::row::{Reference, Row, Table};
use crate::sql::{Columns, Value};
use crate::{Commit, Database, Delete, Record, RowKind, Store, StoreError};
use jiff::Timestamp;
use muster_domain::id::InfraEnvId;
use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Connection};
use std::fmt;
use uuid::Uuid;

const MIGRATION: &str = "create table shelves (
    id {id} not null primary key,
    infra_env_id {id} not null,
    label text not null,
    revision bigint not null,
    created_at bigint not null,
    version bigint not null default 1,
    doc text not null
)";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShelfId(Uuid);

impl fmt::Display for ShelfId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where the machines of an InfraEnv stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shelf {
    id: ShelfId,
    #[serde(skip)]
    revision: i64,
    created_at: Timestamp,
    infra_env: InfraEnvId,
    label: String,
}

impl Document for Shelf {
    const KIND: RowKind = RowKind::Noun(ChangeKind::Shelf);
    const STEPS: &'static [Step] = &[];
}

impl Row for Shelf {
    type Key = ShelfId;

    const NOUN: ChangeKind = ChangeKind::Shelf;
    const TABLE: Table = Table {
        name: "shelves",
        key: &["id"],
        columns: &["infra_env_id", "label"],
        references: &[Reference {
            column: "infra_env_id",
            row: |id| RowKey::InfraEnv(InfraEnvId(id)),
        }],
        dependents: &[],
        tombstones: None,
    };

    fn key(&self) -> ShelfId {
        self.id
    }

    fn revision(&self) -> i64 {
        self.revision
    }

    fn set_revision(&mut self, revision: i64) {
        self.revision = revision;
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn push_key(key: ShelfId, values: &mut Vec<Value>) {
        values.push(Value::text(key));
    }

    fn read_key(row: &AnyRow) -> Result<ShelfId, StoreError> {
        row.parsed(0, "shelf id").map(ShelfId)
    }

    fn push_columns(&self, values: &mut Vec<Value>) {
        values.extend([Value::text(self.infra_env), Value::foreign(&self.label)]);
    }

    fn references(&self) -> Vec<RowKey> {
        vec![RowKey::InfraEnv(self.infra_env)]
    }

    fn feed_id(key: ShelfId) -> Uuid {
        key.0
    }

    fn key_of(change: &Change) -> Option<ShelfId> {
        Some(ShelfId(change.id))
    }

    fn scope(&self) -> Scope {
        Scope {
            infra_env: Some(self.infra_env),
            cluster: None,
        }
    }

    fn scope_of_deleted(_key: ShelfId, _references: &[RowKey]) -> Scope {
        Scope::default()
    }

    fn status(&self) -> &'static str {
        "standing"
    }
}

fn noon() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn infra_env() -> muster_domain::infra_env::InfraEnv {
    serde_json::from_value(serde_json::json!({
        "id": InfraEnvId(Uuid::new_v4()), "name": "pool", "pull_secret": "{}", "openshift_version": "4.20.1",
        "cpu_architecture": "x86_64", "image_type": "full-iso", "image_token_key": "key",
        "created_at": noon(), "updated_at": noon()
    }))
    .unwrap()
}

fn put(record: impl Into<Record>) -> Commit {
    Commit {
        puts: vec![record.into()],
        ..Commit::new(noon())
    }
}

fn delete<R: Row>(row: &R) -> Commit {
    Commit {
        deletes: vec![Delete::of(row)],
        ..Commit::new(noon())
    }
}

fn is_stale<T>(done: Result<T, StoreError>, key: impl Into<RowKey>) -> bool {
    let key = key.into();
    matches!(done, Err(StoreError::Stale(stale)) if stale == key)
}

#[tokio::test]
async fn a_noun_that_is_on_the_list_is_written_read_fed_reloaded_and_removed_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::directory(directory.path());
    let Database::Sqlite(path) = &database else {
        panic!("a directory is SQLite's");
    };
    let store = Store::open(&database).await.unwrap();
    migrate(&format!("sqlite://{}", path.display()), "text").await;
    lives_like_any_other(&store).await;
    store.close().await;
}

#[tokio::test]
async fn a_noun_that_is_on_the_list_is_written_read_fed_reloaded_and_removed_on_postgresql() {
    let Some(server) = crate::test_server() else {
        return;
    };
    let name = format!("shelf_{}", Uuid::new_v4().simple());
    let (front, rest) = server.split_at(server.rfind('/').unwrap());
    let parameters = rest.find('?').map_or("", |at| &rest[at..]);
    let url = format!("{front}/{name}{parameters}");
    ask(&server, &format!("create database {name}")).await;
    let store = Store::open(&Database::Postgres(url.clone())).await.unwrap();
    migrate(&url, "text collate \"C\"").await;
    lives_like_any_other(&store).await;
    store.close().await;
    ask(&server, &format!("drop database {name} with (force)")).await;
}

async fn ask(url: &str, text: &str) {
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(text.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

async fn migrate(url: &str, id: &str) {
    ask(url, &MIGRATION.replace("{id}", id)).await;
}

async fn lives_like_any_other(store: &Store) {
    let mut pool = infra_env();
    let mut shelf = Shelf {
        id: ShelfId(Uuid::new_v4()),
        revision: 0,
        created_at: noon(),
        infra_env: pool.id,
        label: "third from the left".into(),
    };
    assert!(
        is_stale(store.commit(put(shelf.clone())).await, pool.id),
        "what it refers to must be there"
    );
    pool.revision = store.commit(put(pool.clone())).await.unwrap().revisions[0];

    let done = store.commit(put(shelf.clone())).await.unwrap();
    shelf.revision = 1;
    assert_eq!(
        done.puts,
        [Record::Shelf(shelf.clone())],
        "given back as it was written"
    );
    assert!(is_stale(
        store
            .commit(put(Shelf {
                revision: 7,
                ..shelf.clone()
            }))
            .await,
        shelf.id
    ));
    assert!(
        is_stale(store.commit(delete(&pool)).await, pool.id),
        "it is still referred to"
    );

    shelf.label = "by the window".into();
    let done = store.commit(put(shelf.clone())).await.unwrap();
    shelf.revision = done.revisions[0];
    assert_eq!(shelf.revision, 2);
    assert_eq!(store.find(shelf.id).await.unwrap().as_ref(), Some(&shelf));
    assert_eq!(
        store.find_any(shelf.id.into()).await.unwrap(),
        Some(shelf.clone().into())
    );
    assert_eq!(store.list::<Shelf>().await.unwrap(), [shelf.clone()]);
    assert_eq!(store.load::<Shelf>(None, 10).await.unwrap(), [shelf.clone()]);
    assert_eq!(store.load::<Shelf>(Some(shelf.id), 10).await.unwrap(), []);

    store.commit(delete(&shelf)).await.unwrap();
    assert_eq!(store.find(shelf.id).await.unwrap(), None);
    store.commit(delete(&pool)).await.unwrap();

    let changes = store.changes_after(0, 10).await.unwrap();
    let told = changes.iter().filter(|change| change.kind == ChangeKind::Shelf);
    let told: Vec<_> = told
        .map(|change| {
            assert_eq!(RowKey::of(change), Some(shelf.id.into()));
            (
                change.op.word(),
                change.revision,
                change.infra_env,
                change.status.as_str(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("put", 1, Some(pool.id), "standing"),
            ("put", 2, Some(pool.id), "standing"),
            ("delete", 3, None, ""),
        ]
    );
}
