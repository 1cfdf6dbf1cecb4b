//! The rows of one noun in memory, found by key and by what they refer to.

use super::{read, write};
use muster_store::{Row, RowKey};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, RwLock};

#[derive(Debug)]
pub(super) struct Table<R: Row>(RwLock<Rows<R>>);

#[derive(Debug)]
struct Rows<R: Row> {
    by_key: HashMap<R::Key, Entry<R>>,
    by_index: HashMap<RowKey, BTreeSet<R::Key>>,
}

/// Whoever holds it sees newer rows.
type Entry<R> = Arc<RwLock<Arc<R>>>;

impl<R: Row> Default for Table<R> {
    fn default() -> Self {
        Self(RwLock::new(Rows {
            by_key: HashMap::new(),
            by_index: HashMap::new(),
        }))
    }
}

impl<R: Row> Table<R> {
    pub fn entry(&self, key: R::Key) -> Option<Entry<R>> {
        read(&self.0).by_key.get(&key).cloned()
    }

    pub fn get(&self, key: R::Key) -> Option<Arc<R>> {
        read(&self.0).by_key.get(&key).map(|entry| read(entry).clone())
    }

    pub fn all(&self) -> Vec<Arc<R>> {
        let rows = read(&self.0);
        rows.by_key.values().map(|entry| read(entry).clone()).collect()
    }

    pub fn keys(&self) -> Vec<R::Key> {
        read(&self.0).by_key.keys().copied().collect()
    }

    pub fn count(&self) -> usize {
        read(&self.0).by_key.len()
    }

    /// Those that refer to this row, in order.
    pub fn keys_by(&self, index: RowKey) -> Vec<R::Key> {
        let rows = read(&self.0);
        rows.by_index.get(&index).into_iter().flatten().copied().collect()
    }

    pub fn count_by(&self, index: RowKey) -> usize {
        read(&self.0).by_index.get(&index).map_or(0, BTreeSet::len)
    }

    /// Takes over a row, unless a newer one is here already. Gives the one that was here, and the one that is.
    pub fn put(&self, row: R) -> (Option<Arc<R>>, Arc<R>) {
        let key = row.key();
        let mut rows = write(&self.0);
        let before = rows.by_key.get(&key).map(|entry| read(entry).clone());
        if let Some(known) = before.as_ref().filter(|known| known.revision() >= row.revision()) {
            return (before.clone(), known.clone());
        }
        let row = Arc::new(row);
        let old = before.as_ref().map(|row| row.index_keys()).unwrap_or_default();
        let new = row.index_keys();
        if old != new {
            rows.unlink(key, old);
            for index in new {
                rows.by_index.entry(index).or_default().insert(key);
            }
        }
        match rows.by_key.get(&key) {
            Some(entry) => *write(entry) = row.clone(),
            None => drop(rows.by_key.insert(key, Arc::new(RwLock::new(row.clone())))),
        }
        (before, row)
    }

    pub fn remove(&self, key: R::Key) -> Option<Arc<R>> {
        let mut rows = write(&self.0);
        let row = read(&*rows.by_key.remove(&key)?).clone();
        rows.unlink(key, row.index_keys());
        Some(row)
    }
}

impl<R: Row> Rows<R> {
    fn unlink(&mut self, key: R::Key, indexes: Vec<RowKey>) {
        for index in indexes {
            if let Some(keys) = self.by_index.get_mut(&index) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.by_index.remove(&index);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use muster_domain::host::Host;
    use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
    use uuid::Uuid;

    fn host(cluster: Option<ClusterId>, revision: i64) -> Host {
        let key = HostKey {
            infra_env: InfraEnvId(Uuid::nil()),
            host: HostId(Uuid::nil()),
        };
        let mut host = Host::arriving(key, cluster, Timestamp::UNIX_EPOCH);
        host.revision = revision;
        host
    }

    #[test]
    fn a_row_is_found_by_what_it_refers_to_now_and_an_older_one_replaces_nothing() {
        let table = Table::<Host>::default();
        let (one, two) = (ClusterId(Uuid::from_u128(1)), ClusterId(Uuid::from_u128(2)));
        let key = host(None, 1).key();
        table.put(host(Some(one), 2));
        let held = table.entry(key).unwrap();
        let (before, now) = table.put(host(Some(two), 3));
        assert_eq!((before.unwrap().cluster, now.cluster), (Some(one), Some(two)));
        let (_, still) = table.put(host(Some(one), 2));
        assert_eq!(still.cluster, Some(two), "an old copy comes late");
        assert_eq!(read(&held).cluster, Some(two), "who held it sees it change");
        assert_eq!(table.keys_by(one.into()), []);
        assert_eq!(table.keys_by(two.into()), [key]);
        assert_eq!(table.count_by(InfraEnvId(Uuid::nil()).into()), 1);
        assert_eq!(table.remove(key).unwrap().revision, 3);
        assert_eq!((table.count(), table.count_by(two.into())), (0, 0));
        assert!(read(&table.0).by_index.is_empty(), "nothing is left behind");
    }
}
