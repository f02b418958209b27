//! What can be typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Moves records out of other people's paginated APIs into a database you own, and proves that none is missing.
#[derive(Debug, Parser)]
#[command(
    name = "crossdock",
    version,
    about,
    propagate_version = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 clean, 1 failed, 2 usage, 3 completed with failed records, 4 the source's token is needed, \
5 a ledger's run is not finished (the same command goes on)."
)]
pub(crate) struct Cli {
    /// The database: sqlite://FILE or postgres://USER@HOST/NAME [default: sqlite://crossdock.db]
    #[arg(long, global = true, env = "CROSSDOCK_DATABASE", value_name = "URL", hide_env_values = true)]
    pub(crate) database: Option<String>,
    /// A settings file; its keys are those of `serve` with underscores [default: crossdock.toml if it is there]
    #[arg(long, global = true, env = "CROSSDOCK_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How log lines are written to standard error
    #[arg(
        long,
        global = true,
        env = "CROSSDOCK_LOG_FORMAT",
        value_enum,
        default_value = "text",
        hide_env = true
    )]
    pub(crate) log_format: LogFormat,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the whole journey: a simulated account, its import, and every slug asked over HTTP; or a ledger's
    Demo(Demo),
    /// Serve redirects, the API and the pages; on SQLite also run the imports
    Serve(Serve),
    /// Process jobs beside other processes on one Postgres; fetches only jobs whose token it was given
    Worker(Worker),
    /// Bring links over from a vendor
    Import(Import),
    /// List, show and steer imports
    Job(Job),
    /// Plan, run and prove declared migrations of ledger records
    Ledger(crate::commands::Ledger),
    /// List and add domains
    Domain(Domain),
    /// List, create and revoke API tokens
    Token(TokenCommand),
    /// Copy a SQLite database into a new file while it is in use
    Backup(Backup),
    /// Serve a simulated vendor API
    Simulate(Simulate),
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  crossdock demo
  crossdock demo --count 60000 --exit --json
  crossdock demo --faults rough --database postgres://postgres@127.0.0.1/postgres --exit
  crossdock demo ledger --database postgres://postgres@127.0.0.1/postgres"
)]
pub(crate) struct Demo {
    #[command(subcommand)]
    pub(crate) subject: Option<DemoSubject>,
    #[command(flatten)]
    pub(crate) links: DemoLinks,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DemoSubject {
    /// Show a migration of ledger records: several processes, two of them killed on the way, and the certificate
    Ledger(DemoLedger),
}

#[derive(Debug, Args)]
#[command(
    after_help = "The schema `bank` is made in that database and stays there, to be looked at; the same demo again finds \
every record unchanged. A schema `bank` that is not the demo's own is left alone.

Exit codes: 0 if the certificate holds and the counts are those of the source, 1 if not, 2 if it cannot begin.

Examples:
  make demo-ledger                                    with a private Postgres
  crossdock demo ledger --database postgres://postgres@127.0.0.1/postgres
  crossdock demo ledger --count 1000000 --faults rough --exit --json --database postgres://postgres@127.0.0.1/postgres"
)]
pub(crate) struct DemoLedger {
    /// How many wallet logs the simulated core-service exports
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,
    /// The seed that the logs, and the moments of the kills, are made of
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// What goes wrong at the source
    #[arg(long, default_value = "none", value_parser = ["none", "rough"])]
    pub(crate) faults: String,
    /// Drop the schema `bank` first, if it is that of an earlier demo
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Stop after the certificate; otherwise the simulated core-service answers on until Ctrl-C
    #[arg(long)]
    pub(crate) exit: bool,
    /// End with one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoLinks {
    /// How many links the simulated account has
    #[arg(long, default_value_t = 5000)]
    pub(crate) count: u64,
    /// The seed the account is made of
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// What goes wrong on the way: none, rough, or a list as for `simulate bitly`
    #[arg(long, default_value = "none")]
    pub(crate) faults: String,
    /// Stop after the summary instead of serving on
    #[arg(long)]
    pub(crate) exit: bool,
    /// End with one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  crossdock serve
  crossdock serve --listen 0.0.0.0:8080 --public-url https://links.example.com --admin-host links.example.com
  CROSSDOCK_DATABASE=postgres://crossdock@db/crossdock crossdock serve --trusted-proxy 10.0.0.0/8")]
pub(crate) struct Serve {
    /// Where to listen [default: 127.0.0.1:8080]
    #[arg(long, env = "CROSSDOCK_LISTEN", value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The address under which people reach the API and the pages [default: http://LISTEN]
    #[arg(long, env = "CROSSDOCK_PUBLIC_URL", value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// A host on which the API answers; link domains never have it
    #[arg(long, env = "CROSSDOCK_ADMIN_HOST", value_name = "HOST")]
    pub(crate) admin_host: Option<String>,
    /// A network whose X-Forwarded-For is believed; repeatable
    #[arg(long, env = "CROSSDOCK_TRUSTED_PROXY", value_name = "CIDR", value_delimiter = ',')]
    pub(crate) trusted_proxy: Vec<String>,
    /// Workers for each job whose chunks may run side by side; one more than cores if not given, at most 8
    #[arg(long, env = "CROSSDOCK_WORKERS", value_name = "N")]
    pub(crate) workers: Option<usize>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  crossdock worker --database postgres://crossdock@db/crossdock")]
pub(crate) struct Worker {
    /// Workers for each job whose chunks may run side by side; one more than cores if not given, at most 8
    #[arg(long, env = "CROSSDOCK_WORKERS", value_name = "N")]
    pub(crate) workers: Option<usize>,
}

/// How vendors are reached.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SourceArgs {
    /// Ask this address instead of the vendor's own, for example a simulator's
    #[arg(long, env = "CROSSDOCK_BASE_URL", value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// `none`: ask as fast as the source answers, instead of at the vendor's pace
    #[arg(long, env = "CROSSDOCK_PACE", value_enum)]
    pub(crate) pace: Option<Pace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pace {
    Vendor,
    None,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    pub(crate) vendor: ImportVendor,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportVendor {
    /// Bring links over from Bitly
    Bitly(ImportBitly),
}

#[derive(Debug, Args)]
#[command(
    after_help = "The token is read from CROSSDOCK_SOURCE_TOKEN, from standard input, or asked for; it is never an argument.
Started again with the same options, an import that was interrupted goes on from its checkpoint.

Examples:
  crossdock import bitly --domain go.example.com
  crossdock import bitly --domain go.example.com --map-domain bit.ly=go.example.com
  crossdock import bitly --domain go.example.com --on-conflict skip --json < token.txt"
)]
pub(crate) struct ImportBitly {
    /// The domain every slug goes to; made if it is missing
    #[arg(long, value_name = "HOST")]
    pub(crate) domain: String,
    /// Only this Bitly group; all active groups otherwise
    #[arg(long, value_name = "GUID")]
    pub(crate) group: Option<String>,
    /// Send the slugs of host A to domain B; repeatable
    #[arg(long, value_name = "A=B")]
    pub(crate) map_domain: Vec<String>,
    /// Bring only the slugs on this host over; repeatable
    #[arg(long, value_name = "HOST")]
    pub(crate) only_domain: Vec<String>,
    /// What to do with a slug that is taken: `suffix` takes mylink-2 to mylink-50, `skip` leaves it out, `fail` writes nothing at all
    #[arg(long, value_name = "RULE", default_value = "suffix", value_parser = ["suffix", "skip", "fail"])]
    pub(crate) on_conflict: String,
    /// Fetch and check everything, say what would happen, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// End with the job as one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  crossdock job list
  crossdock job show 01k8z3v7q2m4n --json
  crossdock job resume 01k8z3v7q2m4n < token.txt
  crossdock job verify 01k8z3v7q2m4n")]
pub(crate) struct Job {
    /// Answer in JSON on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: JobAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobAction {
    /// The latest imports, newest first
    List,
    /// One import with its history and error log
    Show(JobId),
    /// Stop at the next safe point
    Pause(JobId),
    /// Go on from the checkpoint; reads the source's token as `import` does
    Resume(JobResume),
    /// End for good; what was written stays
    Cancel(JobId),
    /// Compare what the manifest says was written with what stands in the database now
    Verify(JobId),
    /// Remove the links an ended import wrote and that nobody changed since
    Undo(JobId),
}

#[derive(Debug, Args)]
pub(crate) struct JobId {
    /// The job's id
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct JobResume {
    /// The job's id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  crossdock domain add go.example.com --default
  crossdock domain add links.example.org --case insensitive --fallback 'https://www.example.org/?missing={slug}'
  crossdock domain list --json")]
pub(crate) struct Domain {
    /// Answer in JSON on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: DomainAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DomainAction {
    /// All domains of the default workspace
    List,
    /// Add a domain to the default workspace
    Add(DomainAdd),
}

#[derive(Debug, Args)]
pub(crate) struct DomainAdd {
    /// The host, for example go.example.com
    pub(crate) host: String,
    /// How slugs are compared
    #[arg(long, value_name = "MODE", default_value = "sensitive", value_parser = ["sensitive", "insensitive"])]
    pub(crate) case: String,
    /// Where the bare host leads
    #[arg(long, value_name = "URL")]
    pub(crate) root: Option<String>,
    /// Where unknown slugs lead; may contain {slug}
    #[arg(long, value_name = "URL")]
    pub(crate) fallback: Option<String>,
    /// Where expired links lead that name no place of their own
    #[arg(long, value_name = "URL")]
    pub(crate) expired: Option<String>,
    /// The status of redirects: 301, 302, 307 or 308
    #[arg(long, value_name = "CODE", default_value_t = 302)]
    pub(crate) code: u16,
    /// Make it the workspace's default domain
    #[arg(long)]
    pub(crate) default: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  crossdock token create deploy --scope links:read --scope links:write
  crossdock token list
  crossdock token revoke 01k8z3v7q2m4n")]
pub(crate) struct TokenCommand {
    /// Answer in JSON on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: TokenAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenAction {
    /// All tokens of the default workspace; never their secret part
    List,
    /// Make a token and show it once
    Create(TokenCreate),
    /// Revoke a token
    Revoke(JobId),
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreate {
    /// What it is for
    pub(crate) name: String,
    /// What it may do; repeatable; everything if none is named, `jobs:read` too, which shows jobs of the whole installation
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  crossdock backup /backups/crossdock-2026-11-30.db

A Postgres database is backed up with pg_dump.")]
pub(crate) struct Backup {
    /// The new file
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Simulate {
    #[command(subcommand)]
    pub(crate) vendor: SimulateVendor,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimulateVendor {
    /// A Bitly account; prints one JSON line when it listens
    Bitly(SimulateBitly),
    /// An export of a bank's wallet logs; prints one JSON line when it listens
    WalletLogs(SimulateWalletLogs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Faults: none, rough, or a comma-separated list of NAME@N[xK][:ARG], where N counts list requests from 1:
  crossdock simulate bitly --count 1000 --faults 429@3,500@5x2,cut@9
  crossdock simulate bitly --help-faults"
)]
pub(crate) struct SimulateBitly {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    pub(crate) listen: SocketAddr,
    /// How many links the account has
    #[arg(long, default_value_t = 5000)]
    pub(crate) count: u64,
    /// The seed the account is made of
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// What goes wrong
    #[arg(long, default_value = "none")]
    pub(crate) faults: String,
    /// Every answer comes this much later
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub(crate) latency_ms: u64,
    /// The custom domain of the links
    #[arg(long, default_value = "go.example.com", value_name = "HOST")]
    pub(crate) domain: String,
    /// Groups that have links
    #[arg(long, default_value_t = 1)]
    pub(crate) groups: u32,
    /// One more active group, without links
    #[arg(long)]
    pub(crate) empty_group: bool,
    /// How many links of a hundred are on bit.ly
    #[arg(long, default_value_t = 0, value_name = "PERCENT")]
    pub(crate) vendor_domain_percent: u8,
    /// List every fault by name and leave
    #[arg(long)]
    pub(crate) help_faults: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Faults: none, rough, or a comma-separated list of NAME@N[xK][:ARG], where N counts list requests from 1, \
or records from 0:
  crossdock simulate wallet-logs --count 100000 --faults 429@3,500@5x2,expired@9,missing-id@17,late@2000
  crossdock simulate wallet-logs --help-faults
  crossdock simulate wallet-logs --count 100000 --print-accounts | psql"
)]
pub(crate) struct SimulateWalletLogs {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    pub(crate) listen: SocketAddr,
    /// How many movements there are
    #[arg(long, default_value_t = 100_000)]
    pub(crate) count: u64,
    /// The seed they are made of
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many shards can be asked for side by side
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), value_name = "K")]
    pub(crate) partitions: u64,
    /// What goes wrong
    #[arg(long, default_value = "none")]
    pub(crate) faults: String,
    /// Every answer comes this much later
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub(crate) latency_ms: u64,
    /// The bearer token; made from the seed if none is given
    #[arg(long)]
    pub(crate) token: Option<String>,
    /// Print the customers and accounts that the target must know, as COPY commands for psql, and leave
    #[arg(long)]
    pub(crate) print_accounts: bool,
    /// List every fault by name and leave
    #[arg(long)]
    pub(crate) help_faults: bool,
}
