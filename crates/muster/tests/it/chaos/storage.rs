//! The disk under the embedded database is full for a while, or takes no writes.

use super::crew::Size;
use super::disk::Disk;
use super::trial::Trial;
use crate::served::{Place, Served};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "cargo xtask test --only chaos"]
async fn a_full_disk_refuses_writes_by_name_and_takes_them_when_there_is_room_again() {
    let (disk, place) = Disk::under(Place::sqlite());
    let served = Served::start(&place);
    let mut trial = Trial::begin(&[&served], Size::SOME).await;
    let trouble = trial.trouble("the disk is full", &["no room left"]);
    disk.fill();
    trial.is_told(&trouble).await;
    disk.free();
    trial.recovers(&served, &trouble).await;
    trial.ends(served, || Served::start(&place)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "cargo xtask test --only chaos"]
async fn a_disk_that_cannot_be_written_refuses_writes_by_name_and_takes_them_when_it_can() {
    let (disk, place) = Disk::under(Place::sqlite());
    let served = Served::start(&place);
    let mut trial = Trial::begin(&[&served], Size::SOME).await;
    let trouble = trial.trouble(
        "the disk cannot be written",
        &["is read-only", "error of its disk"],
    );
    disk.write_protect();
    trial.is_told(&trouble).await;
    disk.write_enable();
    trial.recovers(&served, &trouble).await;
    trial.ends(served, || Served::start(&place)).await;
}
