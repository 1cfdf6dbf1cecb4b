//! A hub without its database does not go on as an empty one, and two hubs do not share a file.

use crate::machines::Machines;
use crate::program::run;
use crate::served::{Place, Served, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_whose_database_is_removed_ends_and_is_not_started_as_an_empty_one() {
    let place = Place::sqlite();
    let mut served = Served::start(&place);
    Machines::new(&served.hub).await;
    std::fs::remove_file(place.data().join("muster.db")).unwrap();
    let code = until("the hub ends", async || served.ended()).await;
    assert_ne!(code, 0);
    let log = served.log();
    assert!(
        log.contains("was removed while the hub ran") && log.contains("restore a backup"),
        "{log}"
    );

    let data = place.data().display().to_string();
    let again = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", &data]);
    assert_ne!(again.code, 0);
    assert!(
        again.err.contains("is gone") && again.err.contains("muster.db.id"),
        "{}",
        again.err
    );
    assert_eq!(again.out, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_hub_on_the_same_data_is_refused_and_the_first_one_works_on() {
    let place = Place::sqlite();
    let served = Served::start(&place);
    let data = place.data().display().to_string();
    let second = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", &data]);
    assert_ne!(second.code, 0);
    assert!(second.err.contains("another hub, process"), "{}", second.err);
    Machines::new(&served.hub).await;
}
