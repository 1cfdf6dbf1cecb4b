//! What lies beside the SQLite file: who may read it, who holds it, and whether it is still the same database.

use crate::place::Place;
use crate::sample::*;
use muster_store::{Database, Store, StoreError};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Files {
    directory: TempDir,
    file: PathBuf,
    database: Database,
}

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self {
            file: directory.path().join("data/muster.db"),
            database: Database::directory(directory.path().join("data")),
            directory,
        }
    }

    /// With a host in it, and closed.
    async fn filled() -> Self {
        let files = Self::new();
        let store = files.open().await;
        saved(&store, host()).await;
        store.close().await;
        files
    }

    fn beside(&self, end: &str) -> PathBuf {
        format!("{}{end}", self.file.display()).into()
    }

    async fn open(&self) -> Store {
        Store::open(&self.database).await.unwrap()
    }

    /// Why it cannot be opened.
    async fn refusal(&self) -> String {
        let refused = Store::open(&self.database).await.err().unwrap();
        assert!(matches!(refused, StoreError::NotOurs(_)), "{refused:?}");
        refused.to_string()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn an_emptied_file_is_not_taken_for_a_new_hub() {
    let files = Files::filled().await;
    File::create(&files.file).unwrap();
    let told = files.refusal().await;
    assert!(
        told.contains("is empty") && told.contains("muster.db.id"),
        "{told}"
    );
    assert_eq!(fs::metadata(&files.file).unwrap().len(), 0, "it was left alone");
}

#[tokio::test]
async fn a_removed_file_is_not_taken_for_a_new_hub_until_the_marker_is_removed_too() {
    let files = Files::filled().await;
    fs::remove_file(&files.file).unwrap();
    let told = files.refusal().await;
    assert!(
        told.contains("is gone") && told.contains("restore a backup"),
        "{told}"
    );
    fs::remove_file(files.beside(".id")).unwrap();
    let store = files.open().await;
    assert_eq!(store.counts().await.unwrap().hosts, 0);
    store.close().await;
}

#[tokio::test]
async fn a_log_without_its_database_is_not_taken_for_a_new_hub() {
    let files = Files::new();
    fs::create_dir(files.file.parent().unwrap()).unwrap();
    fs::write(files.beside("-wal"), "what is left").unwrap();
    let told = files.refusal().await;
    assert!(told.contains("muster.db-wal"), "{told}");
}

#[tokio::test]
async fn another_database_in_its_place_is_refused_and_a_backup_is_not() {
    let (files, other) = (Files::filled().await, Files::filled().await);
    let backup = files.directory.path().join("backup.db");
    fs::copy(&files.file, &backup).unwrap();
    fs::copy(&other.file, &files.file).unwrap();
    let told = files.refusal().await;
    assert!(
        told.contains("is the database") && told.contains("muster.db.id"),
        "{told}"
    );
    fs::copy(&backup, &files.file).unwrap();
    let store = files.open().await;
    assert_eq!(store.counts().await.unwrap().hosts, 1);
    store.close().await;
}

#[tokio::test]
async fn a_file_without_the_tables_of_a_hub_is_not_taken_for_a_new_one() {
    let files = Files::filled().await;
    fs::remove_file(&files.file).unwrap();
    let elsewhere = Place::sqlite();
    elsewhere.open().await.close().await;
    elsewhere.tamper("delete from meta").await;
    let Database::Sqlite(stripped) = &elsewhere.database else {
        unreachable!()
    };
    fs::copy(stripped, &files.file).unwrap();
    let told = files.refusal().await;
    assert!(told.contains("holds no data of a hub"), "{told}");
}

#[tokio::test]
async fn a_directory_from_before_there_were_markers_gets_one() {
    let place = Place::sqlite();
    let store = place.open().await;
    saved(&store, host()).await;
    store.close().await;
    place.tamper("delete from meta where key = 'identity'").await;
    let Database::Sqlite(file) = &place.database else {
        unreachable!()
    };
    let marker = PathBuf::from(format!("{}.id", file.display()));
    fs::remove_file(&marker).unwrap();
    let store = place.open().await;
    assert_eq!(store.counts().await.unwrap().hosts, 1);
    store.close().await;
    let first = fs::read_to_string(&marker).unwrap();
    // A backup from before there were ids is the database of its directory.
    place.tamper("delete from meta where key = 'identity'").await;
    place.open().await.close().await;
    assert_eq!(fs::read_to_string(&marker).unwrap(), first);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named_as_such() {
    let files = Files::filled().await;
    fs::write(&files.file, "rubbish ".repeat(4096)).unwrap();
    let told = files.refusal().await;
    assert!(told.contains("is not a SQLite database"), "{told}");
}

#[tokio::test]
async fn a_file_that_is_damaged_beyond_its_first_page_is_named_as_such() {
    let files = Files::filled().await;
    let page = 4096;
    let mut content = fs::read(&files.file).unwrap();
    assert!(content.len() > 3 * page);
    content[page..].fill(0xAB);
    fs::write(&files.file, content).unwrap();
    let told = files.refusal().await;
    assert!(
        told.contains("is damaged") && told.contains("restore a backup"),
        "{told}"
    );
}

#[tokio::test]
async fn whoever_empties_the_directory_under_a_hub_gets_no_empty_hub_when_it_starts_again() {
    let files = Files::filled().await;
    let store = files.open().await;
    for end in [".id", "-wal", "-shm", ".lock", ""] {
        fs::remove_file(files.beside(end)).unwrap();
    }
    store.lost().await;
    store.close().await;
    let told = files.refusal().await;
    assert!(told.contains("is gone"), "{told}");
}

#[tokio::test]
async fn a_second_hub_on_one_file_is_refused_and_told_who_holds_it() {
    let files = Files::new();
    let store = files.open().await;
    let told = files.refusal().await;
    let who = format!("process {}", std::process::id());
    assert!(told.contains("another hub") && told.contains(&who), "{told}");
    saved(&store, host()).await;
    store.close().await;
    files.open().await.close().await;
}

#[tokio::test]
async fn another_name_of_the_same_file_is_the_same_file() {
    let files = Files::new();
    let store = files.open().await;
    let link = files.directory.path().join("link.db");
    std::os::unix::fs::symlink(&files.file, &link).unwrap();
    let refused = Store::open(&Database::Sqlite(link)).await.err().unwrap();
    assert!(refused.to_string().contains("another hub"), "{refused}");
    store.close().await;
}

#[tokio::test]
async fn a_file_that_is_removed_emptied_or_replaced_under_a_hub_ends_it() {
    type Deed = fn(&Path);
    let deeds: [(Deed, &str); 3] = [
        (|file| fs::remove_file(file).unwrap(), "was removed"),
        (|file| drop(File::create(file).unwrap()), "was emptied"),
        (
            |file| {
                let copy = file.with_extension("copy");
                fs::copy(file, &copy).unwrap();
                fs::rename(copy, file).unwrap();
            },
            "was replaced",
        ),
    ];
    for (deed, what) in deeds {
        let files = Files::filled().await;
        let store = files.open().await;
        deed(&files.file);
        let told = store.lost().await.to_string();
        assert!(told.contains(what) && told.contains("restore a backup"), "{told}");
        let refused = store.commit(of([put(host())])).await.unwrap_err();
        assert!(matches!(refused, StoreError::NotOurs(_)), "{refused:?}");
        store.close().await;
        assert!(!files.beside("-wal").exists(), "its log is not beside a backup");
    }
}

#[tokio::test]
async fn what_is_written_to_a_removed_file_is_not_acknowledged() {
    let files = Files::filled().await;
    let store = files.open().await;
    fs::remove_file(&files.file).unwrap();
    let refused = store.commit(of([put(host())])).await.unwrap_err();
    assert!(matches!(refused, StoreError::NotOurs(_)), "{refused:?}");
}

#[tokio::test]
async fn only_the_owner_may_read_the_database() {
    let files = Files::new();
    let store = files.open().await;
    saved(&store, host()).await;
    for end in ["", "-wal", "-shm", ".id", ".lock"] {
        assert_eq!(mode(&files.beside(end)), 0o600, "{end}");
    }
    assert_eq!(mode(files.file.parent().unwrap()), 0o700);
    store.close().await;
    // As an older release left it.
    fs::set_permissions(&files.file, Permissions::from_mode(0o644)).unwrap();
    let store = files.open().await;
    saved(&store, host()).await;
    for end in ["", "-wal", "-shm"] {
        assert_eq!(mode(&files.beside(end)), 0o600, "{end}");
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_database_was_emptied_or_exchanged_ends_the_hub() {
    for (deed, what) in [
        ("drop table meta cascade", "lost its tables"),
        ("truncate meta", "was emptied"),
        (
            "update meta set value = gen_random_uuid()::text where key = 'identity'",
            "is another one",
        ),
    ] {
        let Some(place) = Place::postgres().await else {
            return;
        };
        let store = place.open().await;
        place.tamper(deed).await;
        let refused = store.commit(of([put(host())])).await.unwrap_err();
        assert!(matches!(refused, StoreError::NotOurs(_)), "{refused:?}");
        let told = store.lost().await.to_string();
        assert!(told.contains(what), "{told}");
        store.close().await;
        place.remove().await;
    }
}
