//! The reference `cargo xtask bench hub` measures durable changes against: rows inserted one by one into SQLite, each
//! with its own wait for the disk. Takes a directory and a number of seconds, prints inserts per second.

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};
use std::time::{Duration, Instant};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("name a directory")?;
    let limit = Duration::from_secs(arguments.next().ok_or("say for how many seconds")?.parse()?);
    let options = SqliteConnectOptions::new()
        .filename(std::path::Path::new(&directory).join("bare.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let mut connection = options.connect().await?;
    sqlx::query("create table rows (id integer primary key, doc text not null)")
        .execute(&mut connection)
        .await?;
    // About as long as a host's row.
    let doc = "x".repeat(1_500);
    let started = Instant::now();
    let mut count: u32 = 0;
    while started.elapsed() < limit {
        sqlx::query("insert into rows (doc) values ($1)")
            .bind(&doc)
            .execute(&mut connection)
            .await?;
        count += 1;
    }
    println!("{:.0}", f64::from(count) / started.elapsed().as_secs_f64());
    connection.close().await?;
    Ok(())
}
