//! A vendor of the tests' own: an account in memory, paged by number.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use crossdock_imports as imports;
use db::Timestamp;
use engine::{Cursor, Page, PartitionSpec, Position, Profile, Reason, Source, SourceError};
use imports::{Filter, Incoming, IncomingAddress, IncomingLink, Mapper, Token, Unreadable, Vendor};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

pub(crate) const VENDOR: &str = "parcels";
/// A host that is the vendor's own.
pub(crate) const VENDOR_HOST: &str = "par.cel";

/// The id of a record that has none.
pub(crate) const NAMELESS: &str = "(none)";

/// One link of the account, as the vendor writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    pub(crate) id: String,
    /// `host/slug`, the primary one first.
    pub(crate) at: Vec<String>,
    pub(crate) to: String,
    pub(crate) title: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) folder: Option<String>,
    pub(crate) archived: bool,
    /// Microseconds since 1970.
    pub(crate) created: Option<i64>,
    pub(crate) expires: Option<i64>,
    pub(crate) clicks: Option<i64>,
    pub(crate) ios: Option<String>,
    /// Has something that has no place here.
    pub(crate) qr_code: bool,
    /// Means nothing: records that differ here alone are the same link in other bytes.
    pub(crate) noise: u32,
    pub(crate) deleted: bool,
}

/// A link at one address.
pub(crate) fn record(id: &str, at: &str, to: &str) -> Record {
    Record {
        id: id.into(),
        at: vec![at.into()],
        to: to.into(),
        created: Some(1_600_000_000_000_000),
        ..Record::default()
    }
}

/// What the vendor keeps, and how it is asked.
pub(crate) struct Account {
    raw: Mutex<Vec<String>>,
    page_size: AtomicUsize,
    /// The only token that opens the account.
    accepted: Mutex<String>,
    /// Records from this one on are refused.
    refused_from: AtomicUsize,
    /// What pages say of the number of records, if anything.
    total: Mutex<Option<i64>>,
    /// Pages are given out as long as there are permits.
    gate: Semaphore,
    /// A permit for each page that was asked for.
    asked: Semaphore,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            raw: Mutex::default(),
            page_size: AtomicUsize::new(100),
            accepted: Mutex::new("a-token-for-tests".into()),
            refused_from: AtomicUsize::new(usize::MAX),
            total: Mutex::default(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            asked: Semaphore::new(0),
        }
    }
}

impl Account {
    pub(crate) fn set(&self, records: &[Record]) {
        self.set_raw(records.iter().map(|record| serde_json::to_string(record).unwrap()).collect());
    }

    pub(crate) fn set_raw(&self, raw: Vec<String>) {
        *self.raw.lock().unwrap() = raw;
    }

    pub(crate) fn page_size(&self, size: usize) {
        self.page_size.store(size, Ordering::SeqCst);
    }

    /// Pages say that there are so many records.
    pub(crate) fn count(&self, total: i64) {
        *self.total.lock().unwrap() = Some(total);
    }

    /// From now on another token opens the account.
    pub(crate) fn accept(&self, token: &str) {
        *self.accepted.lock().unwrap() = token.to_owned();
    }

    /// Refuses every page that begins at this record or behind it.
    pub(crate) fn refuse_from(&self, record: usize) {
        self.refused_from.store(record, Ordering::SeqCst);
    }

    /// Gives out this many pages and then none until [`Account::open`].
    pub(crate) fn close_after(&self, pages: usize) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
        self.gate.add_permits(pages);
    }

    pub(crate) fn open(&self) {
        self.gate.add_permits(1_000_000);
    }

    /// Waits until a page was asked for.
    pub(crate) async fn asked(&self) {
        let asked = tokio::time::timeout(super::PATIENCE, self.asked.acquire());
        asked.await.expect("a page is asked for").unwrap().forget();
    }
}

pub(super) struct TestVendor(pub(super) Arc<Account>);

#[async_trait]
impl Vendor for TestVendor {
    fn mapper(&self) -> Arc<dyn Mapper> {
        Arc::new(TestMapper)
    }

    async fn source(&self, _filter: &Filter, token: Token) -> Result<Arc<dyn Source>, SourceError> {
        Ok(Arc::new(TestSource {
            account: self.0.clone(),
            token,
            profile: Profile {
                name: VENDOR,
                parallel_partitions: 1,
                stalled_is_end: false,
                prefetch: true,
                stateful_cursor: false,
            },
        }))
    }
}

struct TestSource {
    account: Arc<Account>,
    token: Token,
    profile: Profile,
}

#[async_trait]
impl Source for TestSource {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    async fn partitions(&self) -> Result<Vec<PartitionSpec>, SourceError> {
        let expected = i64::try_from(self.account.raw.lock().unwrap().len()).unwrap();
        Ok(vec![PartitionSpec {
            key: "all".into(),
            expected: Some(expected),
            left_out: None,
            closing: false,
        }])
    }

    async fn page(&self, _partition: &PartitionSpec, at: &Position) -> Result<Page, SourceError> {
        self.account.asked.add_permits(1);
        self.account.gate.acquire().await.unwrap().forget();
        let accepted = self.account.accepted.lock().unwrap().clone();
        if !self.token.with(|token| token == accepted) {
            return Err(SourceError::Unauthorized("this token is not accepted".into()));
        }
        let size = self.account.page_size.load(Ordering::SeqCst);
        let begin: usize = match at {
            Position::At(cursor) => cursor.as_str().parse().unwrap(),
            _ => 0,
        };
        if begin >= self.account.refused_from.load(Ordering::SeqCst) {
            return Err(SourceError::Refused("this account is closed".into()));
        }
        let raw = self.account.raw.lock().unwrap();
        let end = raw.len().min(begin + size);
        let records = raw[begin..end].iter().map(|record| record.clone().into()).collect();
        let next = if end == raw.len() {
            Position::End
        } else {
            Position::At(Cursor::new(end.to_string()).unwrap())
        };
        let total = *self.account.total.lock().unwrap();
        Ok(Page { records, next, total, retries: 0 })
    }
}

struct TestMapper;

impl Mapper for TestMapper {
    fn vendor(&self) -> &'static str {
        VENDOR
    }

    fn vendor_hosts(&self) -> &'static [&'static str] {
        &[VENDOR_HOST]
    }

    fn left_behind(&self) -> &'static [&'static str] {
        &["click history"]
    }

    fn map(&self, raw: &[u8]) -> Result<Incoming, Unreadable> {
        let record: Record = serde_json::from_slice(raw).map_err(|error| Unreadable {
            source_id: None,
            label: None,
            reason: Reason::new("invalid_json", error.to_string()),
        })?;
        if record.id == NAMELESS {
            let reason = Reason::new("missing_id", "the record has no id");
            return Err(Unreadable { source_id: None, label: None, reason });
        }
        if record.to == "unreadable" {
            let reason = Reason::new("unreadable", "the record cannot be read");
            return Err(Unreadable { source_id: Some(record.id), label: None, reason });
        }
        if record.deleted {
            let reason = Reason::new("deleted_at_source", "it is in the vendor's bin");
            return Ok(Incoming::Filtered { source_id: record.id, label: None, reason });
        }
        let addresses = record
            .at
            .iter()
            .map(|address| {
                let (host, slug) = address.split_once('/').unwrap();
                IncomingAddress { host: host.into(), slug: slug.into() }
            })
            .collect();
        let provenance = Record { noise: 0, ..record.clone() };
        Ok(Incoming::Link(Box::new(IncomingLink {
            source_id: record.id,
            addresses,
            destination: record.to,
            title: record.title,
            tags: record.tags,
            folder: record.folder,
            archived: record.archived,
            created_at: record.created.map(Timestamp::from_micros),
            expires_at: record.expires.map(Timestamp::from_micros),
            clicks: record.clicks,
            ios_url: record.ios,
            left_behind: if record.qr_code { vec!["qr_codes"] } else { Vec::new() },
            provenance: serde_json::to_string(&provenance).unwrap(),
            ..IncomingLink::default()
        })))
    }
}
