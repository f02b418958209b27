//! `crossdock demo`: an account of links, its import, and every slug asked over HTTP.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use db::{Address, Database, Id, Timestamp};
use http_room::ServerOptions;
use imports::{ImportReport, Token};
use serde::Serialize;
use simulators::bitly::{Account, Options, Running, Server};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::args::{DemoLinks, Pace, SourceArgs};
use crate::commands::import::{drive, start_plain};
use crate::commands::verify_slugs::{Answers, ask_all};
use crate::commands::{print, print_json, say, serve, simulate, stop_on_signal};
use crate::exit::{Exit, usage};
use crate::lock::{self, Taken};
use crate::settings::File;
use crate::{peak, wire};

/// How long the link to the progress page works.
const PAGE_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// The object that `--json` ends with.
#[derive(Debug, Serialize)]
struct Summary {
    source_links: i64,
    slugs: i64,
    imported: i64,
    unchanged: i64,
    skipped: i64,
    filtered: i64,
    duplicates: i64,
    failed: i64,
    planted_failures: u64,
    verified: u64,
    mismatched: u64,
    seconds: f64,
    links_per_second: f64,
    pages: i64,
    retries: i64,
    peak_rss_bytes: u64,
}

/// A fresh database for the demo, and how to get rid of it.
struct Fresh {
    address: Address,
    clean_up: CleanUp,
}

enum CleanUp {
    /// The person named the file; it stays.
    Nothing,
    Folder(PathBuf),
    /// A database on the server that the person named.
    Drop {
        server: String,
        name: String,
    },
}

pub(super) async fn run(args: &DemoLinks, database: Option<&str>, file: &File) -> anyhow::Result<Exit> {
    let plan = simulate::plan(&args.faults)?;
    let fresh = Fresh::make(database).await?;
    let result = Box::pin(journey(args, plan, &fresh.address, file)).await;
    fresh.remove().await?;
    result
}

async fn journey(
    args: &DemoLinks,
    plan: simulators::bitly::FaultPlan,
    address: &Address,
    file: &File,
) -> anyhow::Result<Exit> {
    let database = wire::open(address).await?;
    let Taken::Ours(_lock) = lock::take(&database, "demo", None)? else {
        return Err(usage("another process runs the jobs of this database"));
    };
    let account = Account::generate(args.count, args.seed);
    let simulator = Server::start(([127, 0, 0, 1], 0).into(), account, plan, Options::default()).await?;
    let source = SourceArgs { base_url: Some(simulator.base_url()), pace: Some(Pace::None) };
    say(format!("a simulated Bitly account with {} links answers at {}", args.count, simulator.base_url()));
    let limits = wire::limits(&database, file.lease()?, None);
    let longest = file.destination_length_max()?;
    let parts = wire::server(&database, &source, limits, longest);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen on 127.0.0.1")?;
    let listen = listener.local_addr()?;
    let stop = stop_on_signal()?;
    let stop_server = CancellationToken::new();
    let options = ServerOptions::new(format!("http://{listen}").parse()?, serve::page_key()?);
    let page_key = options.page_key.clone();
    let server = tokio::spawn(http_room::serve(
        listener,
        options,
        parts.http.clone(),
        stop_server.clone().cancelled_owned(),
    ));
    let began = Instant::now();
    let token = Token::new(simulator.token());
    let (_, id) = start_plain(&parts.jobs, simulator.account().domain(), token).await?;
    parts.http.redirects.domains_changed().await.context("cannot read the domains")?;
    let report = drive(&parts.jobs, id, &stop).await?;
    let seconds = began.elapsed().as_secs_f64();
    if stop.is_cancelled() {
        return Ok(Exit::Failed);
    }
    say(format!("asking every slug over http://{listen} …"));
    let answers = ask_all(simulator.account(), listen).await?;
    let exit = tell(args.json, &simulator, &report, &answers, seconds)?;
    if !args.exit {
        let page = page_key.link(
            &format!("http://{listen}"),
            &format!("/imports/{id}"),
            Timestamp::here().plus(PAGE_LIFE),
        );
        say(format!("the import's page: {page}"));
        say(format!(
            "try a link: curl -i -H 'Host: {}' http://{listen}/SLUG   (Ctrl-C ends)",
            simulator.account().domain()
        ));
        stop.cancelled().await;
    }
    stop_server.cancel();
    server.await??;
    simulator.shutdown().await;
    database.close().await;
    Ok(exit)
}

fn tell(
    json: bool,
    simulator: &Running,
    report: &ImportReport,
    answers: &Answers,
    seconds: f64,
) -> anyhow::Result<Exit> {
    let planted = simulator.account().planted().len() as u64;
    #[allow(clippy::cast_precision_loss)] // For people to read.
    let rate = report.source_links as f64 / seconds.max(0.001);
    let summary = Summary {
        source_links: report.source_links,
        slugs: report.slugs,
        imported: report.imported,
        unchanged: report.unchanged,
        skipped: report.skipped,
        filtered: report.filtered,
        duplicates: report.duplicates,
        failed: report.failed,
        planted_failures: planted,
        verified: answers.verified,
        mismatched: answers.mismatched,
        seconds: (seconds * 1000.0).round() / 1000.0,
        links_per_second: rate.round(),
        pages: report.pages,
        retries: report.retries,
        peak_rss_bytes: peak::peak_rss_bytes().unwrap_or(0),
    };
    for example in &answers.examples {
        say(format!("  wrong answer: {example}"));
    }
    if let Some(reason) = &report.reason {
        say(format!("the import is {}: {reason}", report.status));
    }
    let right = report.status == engine::Status::Completed
        && u64::try_from(summary.failed) == Ok(planted)
        && answers.mismatched == 0
        && answers.verified > 0
        || (report.source_links == 0 && report.status == engine::Status::Completed);
    if json {
        print_json(&summary)?;
    } else {
        print(format!(
            "{} links with {} slugs came over in {seconds:.1} s ({:.0} links/s, {} pages, {} repeats)\n\
             imported {}, left out {}, given twice {}, failed {} (the account was made with {planted} broken links)\n\
             asked over HTTP: {} slugs answer as they must, {} do not\n{}",
            summary.source_links,
            summary.slugs,
            rate,
            summary.pages,
            summary.retries,
            summary.imported,
            summary.filtered + summary.skipped,
            summary.duplicates,
            summary.failed,
            summary.verified,
            summary.mismatched,
            if right { "all of them, none twice, none altered" } else { "SOMETHING IS WRONG" }
        ))?;
    }
    Ok(if right { Exit::Clean } else { Exit::Failed })
}

impl Fresh {
    async fn make(database: Option<&str>) -> anyhow::Result<Self> {
        let Some(url) = database else {
            let folder = std::env::temp_dir().join(format!("crossdock-demo-{}", Id::new()));
            std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            let address = Address::sqlite(folder.join("demo.db"));
            return Ok(Self { address, clean_up: CleanUp::Folder(folder) });
        };
        let address: Address = url.parse().map_err(|error: db::Error| usage(error.to_string()))?;
        match address.file() {
            Some(path) if path.exists() => {
                Err(usage(format!("{} exists; a demo needs a new file", path.display())))
            }
            Some(_) => Ok(Self { address, clean_up: CleanUp::Nothing }),
            None => Self::on_server(url).await,
        }
    }

    /// A database of its own on the named server, so that nothing of what is there is touched.
    async fn on_server(server: &str) -> anyhow::Result<Self> {
        let name = format!("crossdock_demo_{}", Id::new());
        let admin = Database::open(&server.parse()?).await.context("cannot reach the server")?;
        admin.create_database(&name).await.context("cannot make a database for the demo on that server")?;
        admin.close().await;
        let mut url: url::Url = server.parse()?;
        url.set_path(&name);
        say(format!("the demo has a database of its own on that server: {name}"));
        let address = url.as_str().parse()?;
        Ok(Self { address, clean_up: CleanUp::Drop { server: server.to_owned(), name } })
    }

    async fn remove(self) -> anyhow::Result<()> {
        match self.clean_up {
            CleanUp::Nothing => {}
            CleanUp::Folder(folder) => {
                std::fs::remove_dir_all(&folder)
                    .with_context(|| format!("cannot remove {}", folder.display()))?;
            }
            CleanUp::Drop { server, name } => {
                let admin = Database::open(&server.parse()?).await?;
                admin.drop_database(&name).await.context("cannot drop the demo's database")?;
                admin.close().await;
            }
        }
        Ok(())
    }
}
