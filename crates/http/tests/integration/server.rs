//! A running server with a workspace, a domain and a token.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossdock_http::{Clock, Metrics, PageKey, Parts, Redirects, ServerOptions, serve};
use db::{Database, Id, Timestamp};
use engine::{Limits, Runner, Store};
use imports::{ImportKind, Imports, Vault, Vendor};
use links::{
    Content, Destination, Domain, DomainSettings, Host, Link, Name, NewLink, Place, Scope, Slug, SlugChoice,
};
use rand::SeedableRng;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::client::{self, Answer};
use crate::vendor::TestVendor;

/// The link domain of every test.
pub(crate) const HOST: &str = "go.example.com";
/// 2026-03-01T07:00:00Z, where the tests' clocks begin.
pub(crate) const START: i64 = 1_772_348_400_000_000;

/// A clock that stands still until it is moved.
pub(crate) struct TestClock(AtomicI64);

impl TestClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) struct Server {
    /// Runs imports once it is told to.
    pub(crate) runner: Runner,
    pub(crate) address: SocketAddr,
    pub(crate) database: Database,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) domain: Domain,
    pub(crate) token: String,
    pub(crate) workspace: Id,
    pub(crate) redirects: Arc<Redirects>,
    /// What imports said of the records of their last chunk.
    pub(crate) written: Arc<Mutex<Vec<engine::Written>>>,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) running: tokio::task::JoinHandle<()>,
}

/// The key of every test's signed links.
pub(crate) fn page_key() -> PageKey {
    PageKey::new([7; 32])
}

impl Server {
    /// With a case-sensitive domain.
    pub(crate) async fn start(database: Database) -> Self {
        Self::with(database, DomainSettings::default(), |_| {}).await
    }

    pub(crate) async fn with(
        database: Database,
        settings: DomainSettings,
        adjust: impl FnOnce(&mut ServerOptions),
    ) -> Self {
        let clock = Arc::new(TestClock(AtomicI64::new(START)));
        let now = clock.now();
        let mut tx = database.begin().await.unwrap();
        let (workspace, _) = links::ensure_default_workspace(&mut tx, now).await.unwrap();
        let host = Host::new(HOST).unwrap();
        let (domain, _) = links::ensure_domain(&mut tx, workspace.id, &host, &settings, now).await.unwrap();
        links::set_default_domain(&mut tx, workspace.id, Some(domain.id)).await.unwrap();
        tx.commit().await.unwrap();
        let token = token(&database, workspace.id, &Scope::ALL).await;

        let mut registry = prometheus_client::registry::Registry::default();
        let metrics = Metrics::register(&mut registry);
        let redirects = Redirects::new(database.clone(), 1 << 20, clock.clone(), metrics.clone());
        let mut options = ServerOptions::new("https://admin.example.com/".parse().unwrap(), page_key());
        adjust(&mut options);
        let written = Arc::<Mutex<Vec<engine::Written>>>::default();
        let (imports, runner) = imports_of(&database, &redirects, &written);
        let parts = Parts {
            database: database.clone(),
            redirects: redirects.clone(),
            imports,
            registry: Arc::new(registry),
            metrics,
            clock: clock.clone(),
            other_jobs: vec![Arc::new(crate::jobs::TestLedgers)],
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            let shutdown = async { drop(stopped.await) };
            serve(listener, options, parts, shutdown).await.unwrap();
        });
        let workspace = workspace.id;
        Self { runner, address, database, clock, domain, token, workspace, redirects, written, stop, running }
    }

    /// Returns when the last connection has ended and all clicks are written.
    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.running.await.unwrap();
    }

    /// Runs an import of the test vendor's links to its end.
    pub(crate) async fn import(&self) {
        let body = serde_json::json!({"vendor": "test", "token": crate::vendor::TOKEN, "conflict": "suffix"});
        let started = self.api("POST", "/v1/imports", &body.to_string()).await.json();
        self.run_import(started["id"].as_str().unwrap().parse().unwrap()).await;
    }

    /// Waits until the import has ended.
    pub(crate) async fn run_import(&self, job: engine::JobId) {
        let stop = tokio_util::sync::CancellationToken::new();
        let running = tokio::spawn({
            let (runner, stop) = (self.runner.clone(), stop.clone());
            async move { runner.run(stop).await }
        });
        tokio::time::timeout(Duration::from_secs(30), self.runner.rest_of(job)).await.unwrap().unwrap();
        stop.cancel();
        running.await.unwrap();
    }

    /// A link in the database that nobody has told the server of.
    pub(crate) async fn link(&self, slug: &str, destination: &str) -> Link {
        self.link_with(slug, destination, |_| {}).await
    }

    pub(crate) async fn link_with(
        &self,
        slug: &str,
        destination: &str,
        adjust: impl FnOnce(&mut Content),
    ) -> Link {
        let mut content = Content::to(Destination::new(destination).unwrap(), self.clock.now());
        adjust(&mut content);
        let mut tx = self.database.begin().await.unwrap();
        let mut chance = rand::rngs::StdRng::seed_from_u64(1);
        let choice = SlugChoice::Given(Slug::new(slug).unwrap());
        let link =
            links::create_link(&mut tx, &self.domain, choice, content, self.clock.now(), &mut chance).await;
        let link = link.unwrap();
        tx.commit().await.unwrap();
        link
    }

    /// A link as imports add it: without a word in the change feed, which might tell the server to read it again.
    pub(crate) async fn imported_link(&self, slug: &str, destination: &str) {
        let now = self.clock.now();
        let content = Content::to(Destination::new(destination).unwrap(), now);
        let slugs = vec![Place { domain_id: self.domain.id, slug: Slug::new(slug).unwrap() }];
        let link = NewLink { id: Id::new(), content, slugs, origin: None };
        let mut tx = self.database.begin().await.unwrap();
        links::insert_links(&mut tx, self.workspace, &[link], now).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// GET on the link domain.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", HOST, path).await
    }

    pub(crate) async fn ask(&self, method: &str, host: &str, path: &str) -> Answer {
        client::send(self.address, method, path, &[("Host", host)], "").await
    }

    /// A request to the API with the administrator's token.
    pub(crate) async fn api(&self, method: &str, path: &str, body: &str) -> Answer {
        self.api_with(method, path, body, &[]).await
    }

    pub(crate) async fn api_with(
        &self,
        method: &str,
        path: &str,
        body: &str,
        more: &[(&str, &str)],
    ) -> Answer {
        let authorization = format!("Bearer {}", self.token);
        let mut headers = vec![("Host", "admin.example.com"), ("Authorization", authorization.as_str())];
        if !body.is_empty() {
            headers.push(("Content-Type", "application/json"));
        }
        headers.extend_from_slice(more);
        client::send(self.address, method, path, &headers, body).await
    }

    pub(crate) async fn metrics(&self) -> String {
        self.ask("GET", "localhost", "/metrics").await.body
    }

    /// Clicks of the link once the server has written them: to be asked after [`Server::stop`].
    pub(crate) async fn clicks(database: &Database, link: Id) -> links::Count {
        let mut tx = database.begin().await.unwrap();
        while links::roll_up(&mut tx, 100).await.unwrap().folded > 0 {}
        tx.commit().await.unwrap();
        let mut reader = database.read().await.unwrap();
        let totals = links::click_totals(reader.conn(), &[link]).await.unwrap();
        totals.first().map(|(_, count)| *count).unwrap_or_default()
    }
}

/// Imports from the test vendor, and what runs them.
fn imports_of(
    database: &Database,
    redirects: &Arc<Redirects>,
    last: &Arc<Mutex<Vec<engine::Written>>>,
) -> (Imports, Runner) {
    let store = Store::new(database.clone());
    let vault = Arc::new(Vault::default());
    let vendors: Vec<Arc<dyn Vendor>> = vec![Arc::new(TestVendor)];
    let (told, last) = (redirects.clone(), last.clone());
    let after_commit = Arc::new(move |written: &[engine::Written]| {
        told.imported(written);
        *last.lock().unwrap() = written.to_vec();
    });
    let kind = ImportKind::new(database.clone(), vendors.clone(), vault.clone(), after_commit);
    let runner = Runner::new(
        store.clone(),
        vec![Arc::new(kind)],
        Limits::default(),
        engine::metrics::Metrics::default(),
    );
    (Imports::new(store, vendors, vault, Arc::new(|| {})), runner)
}

pub(crate) async fn token(database: &Database, workspace: Id, scopes: &[Scope]) -> String {
    let mut tx = database.begin().await.unwrap();
    let name = Name::new("test").unwrap();
    let mut chance = rand::rngs::StdRng::from_os_rng();
    let now = Timestamp::from_micros(START);
    let made = links::create_token(&mut tx, workspace, &name, scopes, None, now, &mut chance).await.unwrap();
    tx.commit().await.unwrap();
    made.1.reveal().to_owned()
}
