//! What the loops of one host hold, so that they do not take it from each other: the database tells processes apart, not
//! the loops of one.

use parking_lot::Mutex as Short;
use tokio::sync::{Mutex, MutexGuard};

use crate::store::chunks::Key;

/// The partitions that fetchers of this host hold.
#[derive(Default)]
pub(super) struct Parts {
    held: Mutex<Vec<i32>>,
}

impl Parts {
    /// Locks out the other fetchers while one looks for a partition.
    pub(super) async fn look(&self) -> MutexGuard<'_, Vec<i32>> {
        self.held.lock().await
    }

    pub(super) async fn give_back(&self, part: i32) {
        self.held.lock().await.retain(|held| *held != part);
    }
}

/// The chunks that workers of this host have picked. A pick is committed before the chunk is claimed; without this, a
/// second worker would pick the same one in between.
#[derive(Default)]
pub(super) struct Picked {
    turn: Mutex<()>,
    keys: Short<Vec<Key>>,
}

impl Picked {
    /// Locks out the other workers while one picks.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.keys.lock().clone()
    }

    /// Notes a pick until the result is dropped.
    pub(super) fn hold(&self, key: Key) -> Held<'_> {
        self.keys.lock().push(key);
        Held { picked: self, key }
    }
}

/// A picked chunk.
pub(super) struct Held<'p> {
    picked: &'p Picked,
    key: Key,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.picked.keys.lock().retain(|key| *key != self.key);
    }
}
