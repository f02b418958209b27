//! The worked example against an export API that misbehaves, compared row by row with what the API says of itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crossdock_ledger::{Folder, Variables};
use engine::{Job, Mode, Status};
use simulators::wallet_logs::{FaultPlan, Logs, Options, Running, Server, Verdict};

use crate::bank::Bank;

pub(crate) struct Export {
    pub(crate) bank: Bank,
    pub(crate) core: Running,
    pub(crate) token: PathBuf,
}

impl Export {
    pub(crate) async fn open(count: u64, faults: &str, partitions: u64) -> Self {
        Self::into(Bank::empty().await, count, faults, partitions).await
    }

    /// Into an empty bank.
    pub(crate) async fn into(bank: Bank, count: u64, faults: &str, partitions: u64) -> Self {
        let plan: FaultPlan = faults.parse().unwrap();
        let options = Options { partitions, ..Options::default() };
        let core = Server::start("127.0.0.1:0".parse().unwrap(), Logs::generate(count, 1), plan, options)
            .await
            .unwrap();
        bank.execute(include_str!("../../../../pipelines/wallet-logs/schema.sql")).await;
        bank.execute(include_str!("../../../../pipelines/wallet-logs/foreign_keys.sql")).await;
        let mut accounts = Vec::new();
        core.logs().write_customers(&mut accounts).unwrap();
        bank.copy("bank.customers", accounts).await;
        let mut accounts = Vec::new();
        core.logs().write_accounts(&mut accounts).unwrap();
        bank.copy("bank.accounts", accounts).await;
        let token = bank.files().join("token");
        std::fs::write(&token, core.token()).unwrap();
        Self { bank, core, token }
    }

    /// The example's folder, with `pages` of 100 and further lines in `[source]`.
    pub(crate) fn folder(&self, more: &str) -> Folder {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../pipelines/wallet-logs"));
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let pipeline = read("pipeline.toml")
            .replace("env = \"CORE_TOKEN\"", &format!("file = \"{}\"", self.token.display()))
            .replace("size = 1000", "size = 100")
            .replace(
                "[record]",
                &format!("{more}\n[stage]\nsegment_pages = 4\nchunk_records = 150\n\n[record]"),
            );
        let texts: Vec<(String, String)> =
            ["map.sql", "proof.sql", "checks/accounts.sql", "checks/continuity.sql", "checks/movements.sql"]
                .iter()
                .map(|name| ((*name).to_owned(), read(name)))
                .collect();
        let mut files = vec![("pipeline.toml", pipeline.as_str())];
        files.extend(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        Folder::of(files)
    }

    pub(crate) async fn run(&self, folder: Folder) -> Job {
        let variables = Variables::of([("CORE_URL", self.core.url().as_str())]);
        let id = self.bank.ledgers.start(folder, variables, Mode::Stream).await.unwrap();
        self.bank.rest(id).await
    }

    /// Every record that must land is there with its exact values, and nothing else is.
    pub(crate) async fn compare(&self) {
        let mut expected: Vec<String> = self
            .core
            .logs()
            .truth()
            .filter(|row| matches!(row.verdict, Verdict::Lands | Verdict::Flagged))
            .map(|row| {
                let log = &row.log;
                format!(
                    "WL-{0} {0} {1} {2} {3} {4} {5} {6} {7} {8}",
                    log.id,
                    log.wallet_id,
                    log.kind.name(),
                    log.amount,
                    log.balance_before,
                    log.balance_after,
                    log.currency,
                    log.status,
                    log.created_at_ms
                )
            })
            .collect();
        expected.sort_unstable();
        let found = self
            .bank
            .texts(
                "SELECT line FROM (SELECT concat_ws(' ', t.reference, t.source_id, a.wallet_id, t.type, t.amount, t.balance_before, t.balance_after,
                    t.currency, t.status, (extract(epoch FROM t.created_at) * 1000)::bigint) AS line
                FROM bank.transactions t JOIN bank.accounts a ON a.id = t.account_id) x ORDER BY line COLLATE \"C\"",
            )
            .await;
        let lost: Vec<&String> =
            expected.iter().filter(|row| found.binary_search(row).is_err()).take(3).collect();
        let strange: Vec<&String> =
            found.iter().filter(|row| expected.binary_search(row).is_err()).take(3).collect();
        assert!(lost.is_empty() && strange.is_empty(), "lost {lost:#?}\nstrange {strange:#?}");
        assert_eq!(found.len(), expected.len(), "doubled");
    }

    pub(crate) async fn close(self) {
        self.bank.close().await;
        self.core.shutdown().await;
    }
}

/// Waits take no time.
pub(crate) fn hurried() -> upstream::testing::TestClock {
    upstream::testing::TestClock::at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_calm_export_arrives_whole_and_a_second_time_nothing_is_written() {
    let export = Export::open(3_000, "none", 1).await;
    let job = export.run(export.folder("")).await;
    assert_eq!(
        (job.status, job.outcome(), job.counts.imported),
        (Status::Completed, Some("clean"), 3_000),
        "{:?}",
        job.reason
    );
    export.compare().await;
    let before = export.bank.texts("SELECT max(xmin::text::bigint)::text FROM bank.transactions").await;
    let again = export.run(export.folder("")).await;
    assert_eq!((again.counts.unchanged, again.outcome()), (3_000, Some("clean")), "{:?}", again.reason);
    assert_eq!(
        export.bank.texts("SELECT max(xmin::text::bigint)::text FROM bank.transactions").await,
        before
    );
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rough_export_loses_nothing_and_names_what_is_bad() {
    let export = Export::open(3_000, "rough", 1).await;
    let job = export.run(export.folder("")).await;
    let notes = export.bank.notes(job.id).await;
    assert_eq!(
        (job.status, job.outcome()),
        (Status::Completed, Some("partial")),
        "{:?} {notes:#?}",
        job.reason
    );
    let summary = export.core.logs().summary();
    assert_eq!(u64::try_from(job.counts.imported).unwrap(), summary.good, "{notes:#?}");
    assert_eq!(u64::try_from(job.counts.failed).unwrap(), summary.bad, "{notes:#?}");
    export.compare().await;
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_are_fetched_side_by_side_and_make_one_whole() {
    let export = Export::open(2_000, "none", 4).await;
    let shards =
        "[source.partitions]\nparam = \"shard\"\nvalues = [\"0\", \"1\", \"2\", \"3\"]\nside_by_side = 4\n";
    let job = export.run(export.folder(shards)).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 2_000), "{:?}", job.reason);
    let keys = export.bank.texts("SELECT DISTINCT part::text FROM crossdock.segments").await;
    assert_eq!(keys.into_iter().collect::<BTreeSet<_>>().len(), 4);
    export.compare().await;
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keyset_paging_and_an_expired_cursor_make_one_whole() {
    let export = Export::open(1_500, "expired-once@11", 1).await;
    let job = export.run(export.folder("")).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 1_500), "{:?}", job.reason);
    export.compare().await;
    let keyset = export.folder("");
    let text = keyset.text("pipeline.toml").replace(
        "cursor = \"/meta/next_cursor\"\nparam = \"cursor\"",
        "last = \"/id\"\nparam = \"after_id\"",
    );
    let files: Vec<(&str, &str)> =
        ["map.sql", "proof.sql"].iter().map(|name| (*name, keyset.text(name))).collect();
    let again = export.run(Folder::of([("pipeline.toml", text.as_str()), files[0], files[1]])).await;
    assert_eq!((again.status, again.counts.unchanged), (Status::Completed, 1_500), "{:?}", again.reason);
    export.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_token_waits_for_another_and_goes_on_from_its_checkpoint() {
    let export = Export::open(1_200, "token-expires@5", 1).await;
    let job = export.run(export.folder("")).await;
    assert_eq!((job.status, job.fetched), (Status::AwaitingToken, 400), "{:?}", job.reason);
    assert!(!job.reason.as_deref().unwrap_or_default().contains(export.core.token()));
    std::fs::write(&export.token, export.core.renew_token()).unwrap();
    let job = export.bank.resume(job.id).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 1_200), "{:?}", job.reason);
    export.compare().await;
    export.close().await;
}

/// As often as a request is repeated, and more.
const FOR_GOOD: &str = "x20";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_never_looks_like_the_end() {
    for (fault, expected) in [
        ("no-cursor", "nothing at /meta/next_cursor"),
        ("null-cursor", "says that there is more"),
        ("cursor-without-more", "says that there is no more, and names the cursor"),
        ("no-meta", "says nothing at /meta/has_more"),
        ("no-data", "no list at /data"),
        ("empty-object", "no list at /data"),
        ("empty-body", "an empty body"),
        ("html200", "HTML"),
        ("truncated-json", "in the middle"),
    ] {
        let export = Export::open(1_000, &format!("{fault}@3{FOR_GOOD}"), 1).await;
        let job = export.run(export.folder("")).await;
        let reason = job.reason.as_deref().unwrap_or_default();
        assert_eq!((job.status, job.fetched), (Status::Failed, 200), "{fault}: {reason}");
        assert!(reason.contains(expected), "{fault}: {reason}");
        export.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cursors_that_lead_nowhere_are_errors() {
    for (fault, expected) in [("ring@3", "ring"), ("repeat-cursor@3", "cursor")] {
        let export = Export::open(1_000, fault, 1).await;
        let job = export.run(export.folder("")).await;
        let reason = job.reason.as_deref().unwrap_or_default();
        assert_eq!(job.status, Status::Failed, "{fault}: {reason}");
        assert!(reason.contains(expected), "{fault}: {reason}");
        export.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_wrong_once_costs_nothing() {
    let once = [
        "no-cursor",
        "no-data",
        "empty-body",
        "html200",
        "truncated-json",
        "cut",
        "cut-chunked",
        "truncated-gzip",
    ];
    let faults: Vec<String> =
        once.iter().enumerate().map(|(index, fault)| format!("{fault}@{}", 3 + 2 * index)).collect();
    let export = Export::open(1_500, &faults.join(","), 1).await;
    let job = export.run(export.folder("")).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 1_500), "{:?}", job.reason);
    assert_eq!(export.core.stats().struck.len(), once.len());
    export.close().await;
}
