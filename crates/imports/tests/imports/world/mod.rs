//! A workspace with a domain, a runner at work, and short ways to say things.

mod sql;
mod vendor;

use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossdock_imports as imports;
use db::{Database, Id, Timestamp};
use engine::metrics::Metrics;
use engine::runner::Event;
use engine::store::history;
use engine::{JobId, Limits, Runner, Status, Store, Written};
use imports::{
    Conflict, Filter, ImportKind, ImportReport, Imports, LogEntry, NewImport, Token, Vault, Verification,
};
use links::{CaseMode, Content, Destination, Domain, DomainSettings, Host, Link, Place, Slug, SlugChoice};
use rand::SeedableRng;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use vendor::{Account, TestVendor};
pub(crate) use vendor::{NAMELESS, Record, VENDOR, VENDOR_HOST, record};

/// Nothing in these tests takes this long; it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where imports go unless a test says otherwise.
pub(crate) const HOST: &str = "go.example.com";

/// Makes two tests of one, on SQLite and on Postgres, each with a world whose runner is stopped at the end.
macro_rules! import_test {
    ($name:ident, $world:ident, $body:block) => {
        crate::world::import_test!($name, crate::world::limits(), $world, $body);
    };
    ($name:ident, $limits:expr, $world:ident, $body:block) => {
        db::on_both!($name, [&engine::ROOM, &links::ROOM, &crossdock_imports::ROOM], |database| async move {
            let $world = crate::world::World::new(database, $limits).await;
            let going = $world.clone();
            Box::pin(async move { $body }).await;
            going.stop().await;
        });
    };
}
pub(crate) use import_test;

/// The product's bounds with shorter waits.
pub(crate) fn limits() -> Limits {
    Limits { poll: Duration::from_millis(10), lease: Duration::from_secs(5), ..Limits::default() }
}

/// One record for each chunk, and one chunk for each segment.
pub(crate) fn one_by_one() -> Limits {
    Limits { chunk_records: 1, pages_per_segment: 1, ..limits() }
}

type Hook = Box<dyn FnMut(&[Written]) + Send>;

#[derive(Clone)]
pub(crate) struct World(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) database: Database,
    pub(crate) workspace: Id,
    pub(crate) domain: Domain,
    pub(crate) account: Arc<Account>,
    pub(crate) imports: Imports,
    pub(crate) vault: Arc<Vault>,
    runner: Runner,
    hook: Arc<Mutex<Option<Hook>>>,
    events: tokio::sync::Mutex<broadcast::Receiver<Event>>,
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Deref for World {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl World {
    pub(crate) async fn new(database: Database, limits: Limits) -> Self {
        Self::taking(database, limits, links::DESTINATION_LENGTH_MAX).await
    }

    /// A world whose imports take destinations of up to so many characters.
    pub(crate) async fn taking(database: Database, limits: Limits, longest: usize) -> Self {
        let mut tx = database.begin().await.unwrap();
        let (workspace, _) = links::ensure_default_workspace(&mut tx, now()).await.unwrap();
        let host = Host::new(HOST).unwrap();
        let settings = DomainSettings::default();
        let domain = links::add_domain(&mut tx, workspace.id, &host, &settings, now()).await.unwrap();
        links::set_default_domain(&mut tx, workspace.id, Some(domain.id)).await.unwrap();
        tx.commit().await.unwrap();

        let store = Store::new(database.clone());
        let account = Arc::new(Account::default());
        let vendors: Vec<Arc<dyn imports::Vendor>> = vec![Arc::new(TestVendor(account.clone()))];
        let vault = Arc::new(Vault::default());
        let hook: Arc<Mutex<Option<Hook>>> = Arc::default();
        let after_commit = {
            let hook = hook.clone();
            Arc::new(move |written: &[Written]| {
                if let Some(hook) = hook.lock().unwrap().as_mut() {
                    hook(written);
                }
            })
        };
        let kind = ImportKind::new(database.clone(), vendors.clone(), vault.clone(), after_commit)
            .destination_length_max(longest);
        let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
        let runner = Runner::new(store.clone(), vec![Arc::new(kind)], limits, metrics);
        let nudge = {
            let runner = runner.clone();
            Arc::new(move || runner.nudge())
        };
        let imports = Imports::new(store, vendors, vault.clone(), nudge);
        let events = tokio::sync::Mutex::new(runner.events());
        let stop = CancellationToken::new();
        let task = tokio::spawn({
            let (runner, stop) = (runner.clone(), stop.clone());
            async move { runner.run(stop).await }
        });
        Self(Arc::new(Parts {
            database,
            workspace: workspace.id,
            domain,
            account,
            imports,
            vault,
            runner,
            hook,
            events,
            stop,
            task: Mutex::new(Some(task)),
        }))
    }

    /// Lets the runner finish what it does and say what it has to say. May be called again.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        let task = self.task.lock().unwrap().take();
        let Some(task) = task else { return };
        tokio::time::timeout(PATIENCE, task).await.expect("the runner stops").unwrap();
    }

    /// Called after each commit of a chunk, on the runner's thread.
    pub(crate) fn after_commit(&self, hook: impl FnMut(&[Written]) + Send + 'static) {
        *self.hook.lock().unwrap() = Some(Box::new(hook));
    }

    // Importing.

    /// What is asked for when nothing is said.
    pub(crate) fn plain(&self) -> NewImport {
        NewImport {
            workspace_id: self.workspace,
            vendor: VENDOR.into(),
            domain: None,
            conflict: Conflict::Suffix,
            filter: Filter::default(),
            dry_run: false,
            request_id: None,
        }
    }

    /// Imports what the account holds, by the default rules.
    pub(crate) async fn import(&self) -> ImportReport {
        self.import_as(&self.plain()).await
    }

    pub(crate) async fn import_by(&self, conflict: Conflict) -> ImportReport {
        self.import_as(&NewImport { conflict, ..self.plain() }).await
    }

    pub(crate) async fn import_filtered(&self, filter: Filter) -> ImportReport {
        self.import_as(&NewImport { filter, ..self.plain() }).await
    }

    /// Says what an import would do.
    pub(crate) async fn dry_run(&self) -> ImportReport {
        self.import_as(&NewImport { dry_run: true, ..self.plain() }).await
    }

    pub(crate) async fn import_as(&self, new: &NewImport) -> ImportReport {
        let id = self.imports.start(new, token()).await.unwrap();
        self.rest(id).await
    }

    /// Waits until the import rests. Its numbers must add up.
    pub(crate) async fn rest(&self, id: JobId) -> ImportReport {
        let rest = tokio::time::timeout(PATIENCE, self.runner.rest_of(id));
        rest.await.expect("the import rests").unwrap().expect("the import exists");
        // What it wrote may still have to be taken back; each look is a round trip, and the runner is at work.
        let undone = async { while self.imports.is_undoing(id).await.unwrap() {} };
        tokio::time::timeout(PATIENCE, undone).await.expect("what was written is taken back");
        let report = self.report(id).await;
        if report.status == Status::Completed {
            assert_eq!(report.settled(), report.source_links, "every record has one outcome: {report:?}");
        }
        report
    }

    /// Waits until the runner has told that the import moved.
    pub(crate) async fn moved(&self, id: JobId, to: Status) {
        let mut events = self.events.lock().await;
        let told = async {
            loop {
                match events.recv().await {
                    Ok(Event::Moved { job, to: now }) if job == id && now == to => return,
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => panic!("the runner is gone"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, told).await.unwrap_or_else(|_| panic!("the import moves to {to}"));
    }

    pub(crate) async fn report(&self, id: JobId) -> ImportReport {
        self.imports.get(Some(self.workspace), id).await.unwrap()
    }

    pub(crate) async fn log(&self, report: &ImportReport) -> Vec<LogEntry> {
        self.imports.error_log(report.id).await.unwrap()
    }

    pub(crate) async fn remarks(&self, report: &ImportReport) -> Vec<LogEntry> {
        self.imports.remarks(report.id).await.unwrap()
    }

    /// The error log as (source id, outcome, reason).
    pub(crate) async fn reasons(&self, report: &ImportReport) -> Vec<(String, String, String)> {
        let log = self.log(report).await;
        log.into_iter()
            .map(|entry| (entry.source_id.unwrap_or_default(), entry.outcome, entry.reason))
            .collect()
    }

    pub(crate) async fn verify(&self, report: &ImportReport) -> Verification {
        self.imports.verify(Some(self.workspace), report.id).await.unwrap()
    }

    pub(crate) async fn quarantined(&self, report: &ImportReport) -> Vec<history::Quarantined> {
        let mut reader = self.database.read().await.unwrap();
        history::quarantined(reader.conn(), report.id, (-1, -1, -1), 100_000).await.unwrap()
    }

    // The target.

    pub(crate) async fn add_domain(&self, host: &str, case_mode: CaseMode) -> Domain {
        let mut tx = self.database.begin().await.unwrap();
        let settings = DomainSettings { case_mode, ..DomainSettings::default() };
        let host = Host::new(host).unwrap();
        let domain = links::add_domain(&mut tx, self.workspace, &host, &settings, now()).await.unwrap();
        tx.commit().await.unwrap();
        domain
    }

    /// A link that somebody made by hand.
    pub(crate) async fn make(&self, slug: &str, destination: &str) -> Link {
        let mut tx = self.database.begin().await.unwrap();
        let content = Content::to(Destination::new(destination).unwrap(), now());
        let choice = SlugChoice::Given(Slug::new(slug).unwrap());
        let mut chance = rand::rngs::StdRng::seed_from_u64(1);
        let link =
            links::create_link(&mut tx, &self.domain, choice, content, now(), &mut chance).await.unwrap();
        tx.commit().await.unwrap();
        link
    }

    /// Somebody gives a link another destination.
    pub(crate) async fn edit(&self, link: Id, destination: &str) {
        let mut tx = self.database.begin().await.unwrap();
        let destination = Destination::new(destination).unwrap();
        let edit = |content: &mut Content| {
            content.destination = destination;
            Ok(())
        };
        links::update_link(&mut tx, self.workspace, link, None, now(), edit).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn delete(&self, link: Id) {
        let mut tx = self.database.begin().await.unwrap();
        links::delete_link(&mut tx, self.workspace, link, None, now()).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// The live link that answers at this slug of the domain.
    pub(crate) async fn at(&self, domain: &Domain, slug: &str) -> Option<Link> {
        let mut tx = self.database.begin().await.unwrap();
        let place = Place { domain_id: domain.id, slug: Slug::new(slug).unwrap() };
        match links::link_at(&mut tx, self.workspace, &place).await {
            Ok(link) => Some(link),
            Err(links::Error::NotFound(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The live link at this slug of the default domain.
    pub(crate) async fn link(&self, slug: &str) -> Link {
        self.at(&self.domain, slug).await.unwrap_or_else(|| panic!("nothing answers at {slug}"))
    }

    /// Where a slug of the default domain leads.
    pub(crate) async fn leads(&self, slug: &str) -> Option<String> {
        let link = self.at(&self.domain, slug).await?;
        Some(link.content.destination.as_str().to_owned())
    }

    /// Every slug that answers, as `host/slug`, sorted.
    pub(crate) async fn slugs(&self) -> Vec<String> {
        let mut slugs = self
            .texts(
                "SELECT d.host || '/' || s.slug FROM slugs s JOIN domains d ON d.id = s.domain_id \
                 WHERE s.deleted_at IS NULL",
            )
            .await;
        slugs.sort();
        slugs
    }

    /// Rows of everything an import may write to.
    pub(crate) async fn target_rows(&self) -> [i64; 5] {
        let mut rows = [0; 5];
        for (table, count) in ["links", "slugs", "tags", "link_origins", "domains"].iter().zip(&mut rows) {
            *count = self.count(&format!("SELECT COUNT(*) FROM {table}")).await;
        }
        rows
    }
}

pub(crate) fn token() -> Token {
    Token::new("a-token-for-tests")
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_micros(1_769_847_300_000_000)
}

/// `(source id, outcome, reason)` as owned texts.
pub(crate) fn told(id: &str, outcome: &str, reason: &str) -> (String, String, String) {
    (id.to_owned(), outcome.to_owned(), reason.to_owned())
}

/// Counters of a report in the order of the contract: imported, updated, unchanged, skipped, filtered, duplicates,
/// failed.
pub(crate) fn counters(report: &ImportReport) -> [i64; 7] {
    [
        report.imported,
        report.updated,
        report.unchanged,
        report.skipped,
        report.filtered,
        report.duplicates,
        report.failed,
    ]
}
