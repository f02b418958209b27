//! Redirects alone, over 100,000 slugs in a fresh SQLite file, for measuring:
//!
//!     cargo run --release -p crossdock-http --example redirect_server -- 127.0.0.1:18090
//!     curl -i http://127.0.0.1:18090/s000001
//!
//! Slugs are s000000 to s099999; `s{n}` leads to `https://example.com/landing/{n}?utm=x`. Clicks are counted.
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use crossdock_http::{Clock, Metrics, PageKey, Parts, Redirects, ServerOptions, SystemClock, serve};
use links::{Content, Destination, DomainSettings, Host, NewLink, Place, Slug};

type Failure = Box<dyn std::error::Error>;

const LINKS: usize = 100_000;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments.next().unwrap_or_else(|| "127.0.0.1:18090".into());
    let file = std::env::temp_dir().join(format!("redirect-server-{}.db", std::process::id()));
    let url = arguments.next().unwrap_or_else(|| format!("sqlite://{}", file.display()));
    let database = db::Database::open(&url.parse()?).await?;
    database.migrate(&links::ROOM).await?;
    let clock = Arc::new(SystemClock);
    seed(&database, clock.now()).await?;

    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = Metrics::register(&mut registry);
    let redirects =
        Redirects::new(database.clone(), crossdock_http::CACHE_BYTES, clock.clone(), metrics.clone());
    let options = ServerOptions::new("http://localhost".parse()?, PageKey::new([0; 32]));
    let imports = imports::Imports::new(
        engine::Store::new(database.clone()),
        Vec::new(),
        Arc::default(),
        Arc::new(|| {}),
    );
    let parts = Parts {
        database,
        redirects,
        imports,
        registry: Arc::new(registry),
        metrics,
        clock,
        other_jobs: Vec::new(),
    };
    let listener = tokio::net::TcpListener::bind(&listen).await?;
    println!("listening on {listen}");
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    serve(listener, options, parts, interrupted).await?;
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    Ok(())
}

async fn seed(database: &db::Database, now: db::Timestamp) -> Result<(), Failure> {
    let mut tx = database.begin().await?;
    let (workspace, _) = links::ensure_default_workspace(&mut tx, now).await?;
    let host = Host::new("127.0.0.1")?;
    let (domain, made) =
        links::ensure_domain(&mut tx, workspace.id, &host, &DomainSettings::default(), now).await?;
    tx.commit().await?;
    if !made {
        return Ok(());
    }
    let numbers: Vec<usize> = (0..LINKS).collect();
    for part in numbers.chunks(links::BATCH_MAX) {
        let batch = part.iter().map(|n| link(*n, domain.id, now)).collect::<Result<Vec<_>, Failure>>()?;
        let mut tx = database.begin().await?;
        links::insert_links(&mut tx, workspace.id, &batch, now).await?;
        tx.commit().await?;
    }
    Ok(())
}

fn link(number: usize, domain_id: db::Id, now: db::Timestamp) -> Result<NewLink, Failure> {
    let destination = Destination::new(format!("https://example.com/landing/{number}?utm=x"))?;
    Ok(NewLink {
        id: db::Id::new(),
        content: Content::to(destination, now),
        slugs: vec![Place { domain_id, slug: Slug::new(&format!("s{number:06}"))? }],
        origin: None,
    })
}
