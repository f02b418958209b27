//! A vendor with three links, one of which cannot be imported.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use engine::{Cursor, Page, PartitionSpec, Position, Profile, Reason, Source, SourceError};
use imports::{
    Allowance, Certainty, Filter, Forecast, Incoming, IncomingAddress, IncomingLink, Mapper, Token,
    Unreadable, Vendor,
};

/// The token that the vendor accepts.
pub(crate) const TOKEN: &str = "vendor-secret-1";

pub(crate) struct TestVendor;

#[async_trait]
impl Vendor for TestVendor {
    fn mapper(&self) -> Arc<dyn Mapper> {
        Arc::new(TestMapper)
    }

    async fn source(&self, _filter: &Filter, token: Token) -> Result<Arc<dyn Source>, SourceError> {
        if !token.with(|token| token == TOKEN) {
            return Err(SourceError::Unauthorized("401".into()));
        }
        let profile = Profile {
            name: "test",
            parallel_partitions: 1,
            stalled_is_end: false,
            prefetch: true,
            stateful_cursor: false,
        };
        Ok(Arc::new(TestSource(profile)))
    }

    async fn forecast(&self, filter: &Filter, token: Token) -> Result<Option<Forecast>, SourceError> {
        self.source(filter, token).await?;
        Ok(Some(Forecast {
            account: Some("<i>somebody</i>".into()),
            parts: Vec::new(),
            calls: 2,
            certainty: Certainty::Estimated,
            records_per_call: 2,
            month: Some(Allowance { limit: 1000, left: 7 }),
        }))
    }
}

struct TestSource(Profile);

#[async_trait]
impl Source for TestSource {
    fn profile(&self) -> &Profile {
        &self.0
    }

    async fn partitions(&self) -> Result<Vec<PartitionSpec>, SourceError> {
        Ok(vec![PartitionSpec { key: "all".into(), expected: Some(3), left_out: None, closing: false }])
    }

    async fn page(&self, _partition: &PartitionSpec, at: &Position) -> Result<Page, SourceError> {
        let (records, next) = match at {
            Position::Beginning => {
                let cursor = Cursor::new("2").map_err(|error| SourceError::Malformed(error.to_string()))?;
                (vec!["one https://one.example/", "<b>two</b>"], Position::At(cursor))
            }
            _ => (vec!["three https://three.example/"], Position::End),
        };
        let records = records.into_iter().map(Bytes::from).collect();
        Ok(Page { records, next, total: None, retries: 0 })
    }
}

struct TestMapper;

impl Mapper for TestMapper {
    fn vendor(&self) -> &'static str {
        "test"
    }

    fn vendor_hosts(&self) -> &'static [&'static str] {
        &[]
    }

    fn left_behind(&self) -> &'static [&'static str] {
        &["Click history stays <there>."]
    }

    fn map(&self, raw: &[u8]) -> Result<Incoming, Unreadable> {
        let text = String::from_utf8_lossy(raw).into_owned();
        let Some((slug, destination)) = text.split_once(' ') else {
            let reason = Reason::new("missing_destination", format!("{text}: no destination"));
            return Err(Unreadable { source_id: Some(text.clone()), label: Some(text), reason });
        };
        Ok(Incoming::Link(Box::new(IncomingLink {
            source_id: slug.to_owned(),
            addresses: vec![IncomingAddress { host: "old.example.com".into(), slug: slug.to_owned() }],
            destination: destination.to_owned(),
            provenance: "{}".into(),
            ..IncomingLink::default()
        })))
    }
}
