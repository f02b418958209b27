//! A Bitly account brought over by a runner, into both databases: what of a record reaches the target.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use crossdock_vendors::Surroundings;
use crossdock_vendors::bitly::{Bitly, BitlyMapper, BitlyOptions};
use db::{Database, Id, Timestamp};
use engine::metrics::Metrics;
use engine::{Limits, Runner, Source, SourceError, Status, Store};
use imports::{
    Conflict, Filter, ImportKind, ImportReport, Imports, LogEntry, Mapper, NewImport, Token, Vault, Vendor,
};
use links::{DomainSettings, Host, Link, Place, Slug};
use tokio_util::sync::CancellationToken;

use crate::canned::Server;

/// Nothing in these tests takes this long; it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(120);
const HEAD: &str = "200 OK\r\nContent-Type: application/json";

struct Account(Server);

#[async_trait]
impl Vendor for Account {
    fn mapper(&self) -> Arc<dyn Mapper> {
        Arc::new(BitlyMapper)
    }

    async fn source(&self, _filter: &Filter, token: Token) -> Result<Arc<dyn Source>, SourceError> {
        let mut options = BitlyOptions::new(token.clone());
        options.base_url.clone_from(&self.0.base_url);
        Ok(Arc::new(Bitly::new(options, Surroundings::default())?))
    }
}

/// What an import of one page did.
struct Brought {
    database: Database,
    workspace: Id,
    domain: Id,
    report: ImportReport,
    log: Vec<LogEntry>,
}

impl Brought {
    async fn over(database: Database, links: serde_json::Value) -> Self {
        let page = serde_json::json!({"links": links, "pagination": {"next": "", "search_after": ""}});
        let answers = vec![
            ("/v4/groups", HEAD, br#"{"groups":[{"guid":"B1"}]}"#.to_vec()),
            ("/groups/B1/bitlinks", HEAD, page.to_string().into_bytes()),
        ];
        let vendors: Vec<Arc<dyn Vendor>> = vec![Arc::new(Account(Server::start(answers).await))];

        let now = Timestamp::from_micros(1_769_847_300_000_000);
        let mut tx = database.begin().await.unwrap();
        let (workspace, _) = links::ensure_default_workspace(&mut tx, now).await.unwrap();
        let host = Host::new("go.example.com").unwrap();
        let settings = DomainSettings::default();
        let domain = links::add_domain(&mut tx, workspace.id, &host, &settings, now).await.unwrap();
        links::set_default_domain(&mut tx, workspace.id, Some(domain.id)).await.unwrap();
        tx.commit().await.unwrap();

        let (store, vault) = (Store::new(database.clone()), Arc::new(Vault::default()));
        let kind = ImportKind::new(database.clone(), vendors.clone(), vault.clone(), Arc::new(|_| {}));
        let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
        let runner = Runner::new(store.clone(), vec![Arc::new(kind)], Limits::default(), metrics);
        let nudge = {
            let runner = runner.clone();
            Arc::new(move || runner.nudge())
        };
        let imports = Imports::new(store, vendors, vault, nudge);
        let stop = CancellationToken::new();
        let going = tokio::spawn({
            let (runner, stop) = (runner.clone(), stop.clone());
            async move { runner.run(stop).await }
        });
        let new = NewImport {
            workspace_id: workspace.id,
            vendor: "bitly".into(),
            domain: None,
            conflict: Conflict::Suffix,
            filter: Filter::default(),
            dry_run: false,
            request_id: None,
        };
        let id = imports.start(&new, Token::new("t")).await.unwrap();
        tokio::time::timeout(PATIENCE, runner.rest_of(id)).await.expect("the import rests").unwrap();
        stop.cancel();
        tokio::time::timeout(PATIENCE, going).await.expect("the runner stops").unwrap();
        let report = imports.get(Some(workspace.id), id).await.unwrap();
        let log = imports.error_log(id).await.unwrap();
        Self { database, workspace: workspace.id, domain: domain.id, report, log }
    }

    async fn at(&self, slug: &str) -> Option<Link> {
        let mut tx = self.database.begin().await.unwrap();
        let place = Place { domain_id: self.domain, slug: Slug::new(slug).unwrap() };
        links::link_at(&mut tx, self.workspace, &place).await.ok()
    }
}

db::on_both!(
    one_bad_back_half_loses_no_other_address_and_counts_as_failed,
    [&engine::ROOM, &links::ROOM, &imports::ROOM],
    |database| async move {
        let brought = Brought::over(
            database,
            serde_json::json!([
                {"id": "go.example.com/3AbCdEf", "long_url": "https://www.example.com/one",
                 "custom_bitlinks": ["https://go.example.com/ok", "https://go.example.com"]},
                {"id": "go.example.com/4AbCdEf", "long_url": "https://www.example.com/two",
                 "custom_bitlinks": ["https://go.example.com/a%00b", "https://go.example.com/fine"]},
                {"id": "go.example.com:443/%C3%BC", "long_url": " https://www.example.com/three\n",
                 "deeplinks": [{"os": "ios", "app_uri_path": "/a"}]},
            ]),
        )
        .await;
        let report = &brought.report;
        assert_eq!(report.status, Status::Completed);
        assert_eq!((report.imported, report.failed, report.source_links), (1, 2, 3), "{report:?}");
        for (slug, leads) in
            [("3AbCdEf", "one"), ("ok", "one"), ("4AbCdEf", "two"), ("fine", "two"), ("ü", "three")]
        {
            let link = brought.at(slug).await.unwrap_or_else(|| panic!("nothing answers at {slug}"));
            assert_eq!(link.content.destination.as_str(), format!("https://www.example.com/{leads}"));
        }
        let noted = brought.at("ü").await.unwrap().content.notes.unwrap();
        assert_eq!(noted.as_str(), "Deep link for ios: /a");
        let told: Vec<(&str, &str)> = brought
            .log
            .iter()
            .map(|entry| (entry.source_id.as_deref().unwrap_or_default(), entry.reason.as_str()))
            .collect();
        let expected =
            [("go.example.com/3AbCdEf", "unreadable_address"), ("go.example.com/4AbCdEf", "nul_in_text")];
        for (id, code) in expected {
            let named = told.iter().any(|(known, reason)| *known == id && reason.contains(code));
            assert!(named, "{id} {code}: {told:?}");
        }
    }
);
