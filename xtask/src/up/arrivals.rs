//! Tells a newcomer what the simulated hosts do: one line whenever a host shows up or changes its status.

use std::collections::BTreeMap;

/// What was last said about each host.
#[derive(Default)]
pub struct Arrivals(BTreeMap<String, String>);

/// A host as `muster host list` shows it.
#[derive(Debug, PartialEq)]
struct Host<'a> {
    name: &'a str,
    id: &'a str,
    status: &'a str,
}

impl Arrivals {
    /// One line for each host whose status is new in this table.
    pub fn news(&mut self, table: &str) -> Vec<String> {
        hosts(table).iter().filter_map(|host| self.note(host)).collect()
    }

    /// How many hosts have reported their hardware: free and ready, lacking something, or already lent to a cluster.
    pub fn settled(&self) -> usize {
        let known = self.0.values();
        known.filter(|status| !status.starts_with("discovering")).count()
    }

    fn note(&mut self, host: &Host<'_>) -> Option<String> {
        let Host { name, id, status } = host;
        match self.0.insert((*id).to_owned(), (*status).to_owned()) {
            Some(before) if before == *status => None,
            Some(before) => Some(format!("host {name}: {before} -> {status}")),
            None => Some(format!("host {name} arrived: {status}")),
        }
    }
}

/// The rows of the table. The columns we want are words, and so is what comes before them.
fn hosts(table: &str) -> Vec<Host<'_>> {
    let mut lines = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let titles = lines.next().unwrap_or_default();
    let place = |title| titles.iter().position(|one| *one == title);
    let Some(((name, id), status)) = place("NAME").zip(place("ID")).zip(place("STATUS")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for words in lines {
        let word = |at: usize| words.get(at).copied();
        let Some(((name, id), status)) = word(name).zip(word(id)).zip(word(status)) else {
            continue;
        };
        // Until it has reported it has no name.
        let name = if name == "-" { id } else { name };
        found.push(Host { name, id, status });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
NAME        ID        STATUS               CLUSTER  ROLE         CPUS  MEMORY  SEEN
edge-00001  5e1a2b3c  discovering-unbound  -        auto-assign  8     32 GiB  2 s ago
-           6f2b3c4d  known-unbound        -        auto-assign  -     -       -
";

    #[test]
    fn hosts_are_read_from_the_table_that_people_read() {
        let found = hosts(TABLE);
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0],
            Host {
                name: "edge-00001",
                id: "5e1a2b3c",
                status: "discovering-unbound"
            }
        );
        assert_eq!((found[1].name, found[1].status), ("6f2b3c4d", "known-unbound"));
        assert_eq!(hosts(""), []);
        assert_eq!(hosts("something else\nentirely"), []);
    }

    #[test]
    fn a_host_is_mentioned_when_it_arrives_and_when_it_changes_and_not_otherwise() {
        let mut arrivals = Arrivals::default();
        let mut note = |status| {
            arrivals.note(&Host {
                name: "rack1-u2",
                id: "h1",
                status,
            })
        };
        assert_eq!(
            note("discovering-unbound").as_deref(),
            Some("host rack1-u2 arrived: discovering-unbound")
        );
        assert_eq!(note("discovering-unbound"), None);
        assert_eq!(arrivals.settled(), 0);
        let changed = arrivals.note(&Host {
            name: "rack1-u2",
            id: "h1",
            status: "known-unbound",
        });
        assert_eq!(
            changed.as_deref(),
            Some("host rack1-u2: discovering-unbound -> known-unbound")
        );
        assert_eq!(arrivals.settled(), 1);
    }
}
