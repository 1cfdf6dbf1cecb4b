//! Files of clusters: written with rows, read whole or in pieces, uploaded bit by bit, gone with their cluster.

use crate::place::Place;
use crate::sample::*;
use muster_domain::cluster::Cluster;
use muster_domain::id::ClusterId;
use muster_store::{Commit, FileWrite, Store};
use uuid::Uuid;

crate::on_both!(
    a_file_is_read_as_it_was_written,
    several_files_and_their_cluster_are_one_commit,
    a_file_needs_its_cluster,
    files_are_renamed_replaced_and_deleted_by_prefix,
    names_are_compared_byte_by_byte,
    a_deleted_cluster_takes_its_files_along,
    an_upload_is_a_file_only_when_it_is_complete,
    an_upload_given_up_leaves_nothing,
    uploads_of_a_dead_process_are_pruned,
    an_upload_into_a_deleted_cluster_is_refused,
    a_reader_notices_that_its_file_was_replaced,
    files_survive_reopening,
);

/// More than two chunks, and no chunk like another.
fn large() -> Vec<u8> {
    (0..2_500_000_u32).map(|n| (n / 1000 % 251) as u8).collect()
}

async fn saved_cluster(store: &Store) -> Cluster {
    let mut cluster = cluster();
    let write = put(cluster.clone());
    cluster.revision = store.commit(of([write])).await.unwrap().revisions[0];
    cluster
}

fn of_files(files: Vec<FileWrite>) -> Commit {
    Commit { files, ..commit() }
}

async fn paths(store: &Store, id: ClusterId, prefix: &str) -> Vec<String> {
    let files = store.file_list(id, prefix).await.unwrap();
    files.into_iter().map(|file| file.path).collect()
}

async fn chunks(place: &Place, store: &Store) -> (i64, i64) {
    // Uploads that were let go of are cleaned up right after the writer answered the commits beside them: the second of
    // two commits comes after that.
    for _ in 0..2 {
        store.commit(Commit::new(noon())).await.unwrap();
    }
    (
        place.count("file_chunks").await,
        place.count("file_uploads").await,
    )
}

async fn a_file_is_read_as_it_was_written(place: &Place) {
    let store = place.open().await;
    let id = saved_cluster(&store).await.id;
    for content in [Vec::new(), b"\0binary\xff".to_vec(), large()] {
        store
            .file_put(id, "generated/a", content.clone(), at(5))
            .await
            .unwrap();
        assert_eq!(
            store.file_read(id, "generated/a").await.unwrap().unwrap(),
            content
        );
        let stat = store.file_stat(id, "generated/a").await.unwrap().unwrap();
        assert_eq!((stat.size, stat.written_at), (content.len() as u64, at(5)));
        let mut reader = store.file_open(id, "generated/a").await.unwrap().unwrap();
        let mut read = Vec::new();
        while let Some(mut piece) = reader.next().await.unwrap() {
            assert!(piece.len() <= 1 << 20);
            read.append(&mut piece);
        }
        assert_eq!(read, content);
    }
    assert_eq!(store.file_read(id, "generated/b").await.unwrap(), None);
    assert!(store.file_open(id, "generated/b").await.unwrap().is_none());
    assert_eq!(store.file_stat(id, "generated").await.unwrap(), None);
}

async fn several_files_and_their_cluster_are_one_commit(place: &Place) {
    let store = place.open().await;
    let seen = saved_cluster(&store).await;
    let id = seen.id;
    let both = |cluster: &Cluster, text: &str| Commit {
        puts: vec![cluster.clone().into()],
        ..of_files(vec![FileWrite::put(id, "a", text), FileWrite::put(id, "b", text)])
    };
    store.commit(both(&seen, "first")).await.unwrap();
    // The cluster moved on: neither row nor file changes.
    assert_stale(store.commit(both(&seen, "second")).await, "cluster");
    for path in ["a", "b"] {
        assert_eq!(store.file_read(id, path).await.unwrap().unwrap(), b"first");
    }
}

async fn a_file_needs_its_cluster(place: &Place) {
    let store = place.open().await;
    let nobody = ClusterId(Uuid::new_v4());
    assert_stale(
        store
            .commit(of_files(vec![FileWrite::put(nobody, "a", "x")]))
            .await,
        "cluster",
    );
    assert_eq!(paths(&store, nobody, "").await, [""; 0]);
    // A cluster that is made by the same commit will do.
    let cluster = cluster();
    let id = cluster.id;
    let commit = Commit {
        puts: vec![cluster.into()],
        ..of_files(vec![FileWrite::put(id, "a", "x")])
    };
    store.commit(commit).await.unwrap();
    assert_eq!(paths(&store, id, "").await, ["a"]);
}

async fn files_are_renamed_replaced_and_deleted_by_prefix(place: &Place) {
    let store = place.open().await;
    let (id, other) = (saved_cluster(&store).await.id, saved_cluster(&store).await.id);
    let all = [
        "generated/a",
        "generated/b",
        "generatedx",
        "logs/a",
        "manifests/m.yaml",
    ];
    for cluster in [id, other] {
        let files = all.map(|path| FileWrite::put(cluster, path, path)).to_vec();
        store.commit(of_files(files)).await.unwrap();
    }
    assert_eq!(
        paths(&store, id, "generated/").await,
        ["generated/a", "generated/b"]
    );
    let changes = vec![
        FileWrite::delete_prefix(id, "generated/"),
        FileWrite::put(id, "generated/c", "new"),
        FileWrite::rename(id, "manifests/m.yaml", "logs/a"),
        FileWrite::rename(id, "no/such/file", "logs/b"),
        FileWrite::rename(id, "generatedx", "generatedx"),
        FileWrite::delete(id, "no/such/file"),
    ];
    store.commit(of_files(changes)).await.unwrap();
    assert_eq!(
        paths(&store, id, "").await,
        ["generated/c", "generatedx", "logs/a"]
    );
    assert_eq!(
        store.file_read(id, "logs/a").await.unwrap().unwrap(),
        b"manifests/m.yaml"
    );
    assert_eq!(paths(&store, other, "").await, all);
    // Nothing of what was replaced is left.
    assert_eq!(chunks(place, &store).await, (3 + 5, 0));
}

async fn names_are_compared_byte_by_byte(place: &Place) {
    let store = place.open().await;
    let id = saved_cluster(&store).await.id;
    let names = ["m/B.yaml", "m/_.yaml", "m/a.yaml", "m/ä.yaml", "m/😀.yaml"];
    let files = names.map(|path| FileWrite::put(id, path, "x")).to_vec();
    store.commit(of_files(files)).await.unwrap();
    assert_eq!(paths(&store, id, "m/").await, names);
    assert_eq!(store.file_read(id, "m/A.yaml").await.unwrap(), None);
}

async fn a_deleted_cluster_takes_its_files_along(place: &Place) {
    let store = place.open().await;
    let (gone, kept) = (saved_cluster(&store).await, saved_cluster(&store).await);
    for id in [gone.id, kept.id] {
        store.file_put(id, "generated/a", large(), noon()).await.unwrap();
    }
    let delete = delete(gone.id, gone.revision);
    store.commit(of([delete])).await.unwrap();
    assert_eq!(paths(&store, gone.id, "").await, [""; 0]);
    assert_eq!(
        store.file_read(kept.id, "generated/a").await.unwrap().unwrap(),
        large()
    );
    assert_eq!(chunks(place, &store).await, (3, 0));
}

async fn an_upload_is_a_file_only_when_it_is_complete(place: &Place) {
    let store = place.open().await;
    let id = saved_cluster(&store).await.id;
    store.file_put(id, "logs/h", "old", noon()).await.unwrap();
    let mut upload = store.upload();
    for piece in large().chunks(77_777) {
        upload.write(piece, noon()).await.unwrap();
    }
    assert_eq!(store.file_read(id, "logs/h").await.unwrap().unwrap(), b"old");
    let file = upload.file(id, "logs/h", noon()).await.unwrap();
    store.commit(of_files(vec![file])).await.unwrap();
    assert_eq!(store.file_read(id, "logs/h").await.unwrap().unwrap(), large());
    // Letting go of what became a file does not take it away.
    drop(upload);
    assert_eq!(chunks(place, &store).await, (3, 0));
    // Nothing at all can be uploaded too.
    let mut empty = store.upload();
    let file = empty.file(id, "logs/e", noon()).await.unwrap();
    store.commit(of_files(vec![file])).await.unwrap();
    assert_eq!(store.file_read(id, "logs/e").await.unwrap().unwrap(), b"");
}

async fn an_upload_given_up_leaves_nothing(place: &Place) {
    let store = place.open().await;
    let id = saved_cluster(&store).await.id;
    let mut upload = store.upload();
    upload.write(&large(), noon()).await.unwrap();
    assert_eq!(chunks(place, &store).await, (2, 1));
    drop(upload);
    assert_eq!(chunks(place, &store).await, (0, 0));
    assert_eq!(paths(&store, id, "").await, [""; 0]);
}

async fn uploads_of_a_dead_process_are_pruned(place: &Place) {
    let store = place.open().await;
    let (mut old, mut young) = (store.upload(), store.upload());
    old.write(&large(), at(0)).await.unwrap();
    young.write(&large(), at(100)).await.unwrap();
    assert_eq!(store.uploads_prune(at(50)).await.unwrap(), 1);
    assert_eq!(chunks(place, &store).await, (2, 1));
    assert_eq!(store.uploads_prune(at(101)).await.unwrap(), 1);
    assert_eq!(chunks(place, &store).await, (0, 0));
}

async fn an_upload_into_a_deleted_cluster_is_refused(place: &Place) {
    let store = place.open().await;
    let cluster = saved_cluster(&store).await;
    let mut upload = store.upload();
    upload.write(&large(), noon()).await.unwrap();
    let delete = delete(cluster.id, cluster.revision);
    store.commit(of([delete])).await.unwrap();
    let file = upload.file(cluster.id, "logs/h", noon()).await.unwrap();
    assert_stale(store.commit(of_files(vec![file])).await, "cluster");
    drop(upload);
    assert_eq!(chunks(place, &store).await, (0, 0));
}

async fn a_reader_notices_that_its_file_was_replaced(place: &Place) {
    let store = place.open().await;
    let id = saved_cluster(&store).await.id;
    store.file_put(id, "a", large(), noon()).await.unwrap();
    let mut reader = store.file_open(id, "a").await.unwrap().unwrap();
    assert!(reader.next().await.unwrap().is_some());
    store.file_put(id, "a", "other", noon()).await.unwrap();
    let error = reader.next().await.unwrap_err();
    assert!(
        matches!(&error, muster_store::StoreError::Replaced { .. }),
        "{error:?}"
    );
}

async fn files_survive_reopening(place: &Place) {
    let store = place.open().await;
    let id = saved_cluster(&store).await.id;
    store.file_put(id, "a", large(), noon()).await.unwrap();
    store.close().await;
    let store = place.open().await;
    assert_eq!(store.file_read(id, "a").await.unwrap().unwrap(), large());
}
