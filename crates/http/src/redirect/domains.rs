//! The link domains, by host: a snapshot that requests read without a lock.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use db::{Database, Id};
use links::{CaseMode, Host};
use quick_cache::DefaultHashBuilder;

use super::answer::Rules;
use super::stamps::Stamps;

/// What a redirect needs to know of a domain.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) id: Id,
    pub(crate) case: CaseMode,
    pub(crate) rules: Rules,
}

type Map = HashMap<Box<str>, Arc<Domain>, DefaultHashBuilder>;

pub(crate) struct Domains {
    map: ArcSwap<Map>,
    /// One reader of the database at a time, so that an older snapshot never replaces a newer one.
    loading: tokio::sync::Mutex<()>,
}

impl Domains {
    pub(crate) fn empty() -> Self {
        Self { map: ArcSwap::default(), loading: tokio::sync::Mutex::new(()) }
    }

    /// The domain that a request's host names, however it is written.
    pub(crate) fn find(&self, host: &str) -> Option<Arc<Domain>> {
        let map = self.map.load();
        if let Some(domain) = map.get(host) {
            return Some(domain.clone());
        }
        // Nearly every client sends the host in the form it is stored in.
        let host = Host::new(host).ok()?;
        map.get(host.as_str()).cloned()
    }

    /// Reads all domains again. When one has changed the way it compares slugs, everything cached is out of date.
    pub(crate) async fn reload(&self, database: &Database, stamps: &Stamps) -> links::Result<()> {
        let _alone = self.loading.lock().await;
        let mut reader = database.read().await?;
        let domains = links::all_domains(reader.conn()).await?;
        drop(reader);
        let fresh: Map = domains
            .into_iter()
            .map(|domain| {
                let kept = Domain {
                    id: domain.id,
                    case: domain.settings.case_mode,
                    rules: Rules::new(&domain.settings),
                };
                (domain.host.as_str().into(), Arc::new(kept))
            })
            .collect();
        let before = self.map.swap(Arc::new(fresh));
        let now = self.map.load();
        let compares_otherwise = before
            .iter()
            .any(|(host, old)| now.get(host).is_some_and(|new| new.id == old.id && new.case != old.case));
        if compares_otherwise {
            stamps.everything_changed();
        }
        Ok(())
    }
}
