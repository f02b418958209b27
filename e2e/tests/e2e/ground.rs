//! Ground for the real binary: a folder, a fresh database, processes that end with the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use tempfile::TempDir;

use crate::workspace;

/// Nothing in these tests takes this long; it turns a hang into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const BINARY_VARIABLE: &str = "CROSSDOCK_BIN";
const SERVER_VARIABLE: &str = "CROSSDOCK_TEST_POSTGRES";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
}

/// Makes two tests of a function that takes the kind of database.
macro_rules! on_both {
    ($name:ident) => {
        mod $name {
            #[test]
            fn on_sqlite() {
                super::$name(crate::ground::Database::Sqlite);
            }

            #[test]
            fn on_postgres() {
                super::$name(crate::ground::Database::Postgres);
            }
        }
    };
}
pub(crate) use on_both;

fn binary() -> PathBuf {
    let named = std::env::var_os(BINARY_VARIABLE).map(PathBuf::from);
    let binary = named.unwrap_or_else(|| workspace::root().join("target/debug/crossdock"));
    assert!(binary.exists(), "{} is missing: `cargo build -p crossdock-cli` makes it", binary.display());
    binary
}

pub(crate) fn server_url() -> String {
    std::env::var(SERVER_VARIABLE)
        .unwrap_or_else(|_| panic!("{SERVER_VARIABLE} is not set: run the tests with `make test`"))
}

/// A folder to work in and a fresh database.
pub(crate) struct Ground {
    pub(crate) folder: TempDir,
    pub(crate) url: String,
    dropped: Option<String>,
}

impl Ground {
    pub(crate) fn new(database: Database) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        match database {
            Database::Sqlite => {
                let url = format!("sqlite://{}", folder.path().join("links.db").display());
                Self { folder, url, dropped: None }
            }
            Database::Postgres => {
                let unique: String =
                    folder.path().to_string_lossy().chars().filter(char::is_ascii_alphanumeric).collect();
                let name = format!("e2e_{}_{}", std::process::id(), unique.to_lowercase());
                admin(&format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"));
                let mut url = url::Url::parse(&server_url()).expect("the variable holds a URL");
                url.set_path(&name);
                Self { folder, url: url.to_string(), dropped: Some(name) }
            }
        }
    }

    /// The binary on this database, with nothing of the surroundings in it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = bare(args);
        command.current_dir(self.folder.path()).env("CROSSDOCK_DATABASE", &self.url);
        // A killed process holds its lease for this long.
        command.env("CROSSDOCK_LEASE_SECONDS", "2");
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        Done::of(&mut self.command(args))
    }

    /// Runs a command that answers in JSON and succeeds.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let done = self.run(args);
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        done.json()
    }

    /// An import of the simulated account with more arguments.
    pub(crate) fn import_command(&self, account: &Simulator, more: &[&str]) -> Command {
        let mut command =
            self.command(&["import", "bitly", "--base-url", &account.url, "--pace", "none", "--json"]);
        if !more.contains(&"--domain") {
            command.args(["--domain", &account.domain]);
        }
        command.args(more).env("CROSSDOCK_SOURCE_TOKEN", &account.token);
        command
    }

    pub(crate) fn import(&self, account: &Simulator, more: &[&str]) -> Done {
        Done::of(&mut self.import_command(account, more))
    }

    /// The job as `job show --json` tells it.
    pub(crate) fn job(&self, id: &str) -> Value {
        let done = self.run(&["job", "show", id, "--json"]);
        done.json()
    }

    /// Asks for the job until it is as wanted.
    pub(crate) fn until(&self, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let job = self.job(id);
            if wanted(&job["job"]) {
                return job;
            }
            assert!(Instant::now() < deadline, "waited in vain until {what}: {job}");
        }
    }

    /// Runs statements on the database, which is Postgres.
    pub(crate) fn execute(&self, statements: &str) {
        execute(&self.url, statements);
    }

    /// Waits until as many connections to the database, which is Postgres, are open as wanted.
    pub(crate) fn until_connected(&self, wanted: impl Fn(i64) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        on_server(&server_url(), async |conn| {
            loop {
                let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1";
                let count = sqlx::query_scalar(query).bind(&self.dropped).fetch_one(&mut *conn).await;
                let count: i64 = count.expect("the server counts its connections");
                if wanted(count) {
                    return;
                }
                assert!(Instant::now() < deadline, "{count} connections are open");
            }
        });
    }

    /// Every file of the folder, as bytes, must be free of the text.
    pub(crate) fn holds_nowhere(&self, secret: &str) {
        for entry in std::fs::read_dir(self.folder.path()).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            let bytes = std::fs::read(&path).expect("the file can be read");
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds the token", path.display());
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(name) = &self.dropped {
            admin(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}

/// Names of databases cannot be bound; they are made of our own letters and digits.
fn admin(statement: &str) {
    execute(&server_url(), statement);
}

fn execute(url: &str, statements: &str) {
    on_server(url, async |conn| {
        let done = conn.execute(AssertSqlSafe(statements.to_owned())).await;
        done.map(drop).expect("the server understands the statements");
    });
}

/// Does something on a connection of its own.
fn on_server<T>(url: &str, work: impl AsyncFnOnce(&mut sqlx::PgConnection) -> T) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let options: sqlx::postgres::PgConnectOptions = url.parse().expect("the variable holds a URL");
        let mut conn = options.connect().await.expect("the test server answers");
        let done = work(&mut conn).await;
        conn.close().await.expect("the connection closes");
        done
    })
}

/// The binary without a database.
pub(crate) fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("CROSSDOCK_") {
            command.env_remove(variable);
        }
    }
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A command that came to its end.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().expect("the binary starts"))
    }

    /// The last line of standard output.
    pub(crate) fn json(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What was said to people contains all of these.
    pub(crate) fn says(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.stderr.contains(part), "says {part:?}: {self:?}");
        }
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("data is text"),
            stderr: String::from_utf8(output.stderr).expect("talk is text"),
        }
    }
}

/// A process in the background; it is killed when the test ends.
pub(crate) struct Process {
    child: Child,
    out: Receiver<String>,
    talk: Receiver<String>,
    heard: String,
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the binary starts");
        let out = lines(child.stdout.take().expect("it was piped"));
        let talk = lines(child.stderr.take().expect("it was piped"));
        Self { child, out, talk, heard: String::new() }
    }

    /// The next line of standard output.
    pub(crate) fn line(&mut self) -> String {
        self.out
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("nothing was printed; it said {}", self.rest_of_talk()))
    }

    /// Waits until a line of talk contains this; the line.
    pub(crate) fn hears(&mut self, part: &str) -> String {
        loop {
            let Ok(line) = self.talk.recv_timeout(PATIENCE) else {
                panic!("never said {part:?}: {}", self.heard)
            };
            self.heard.push_str(&line);
            self.heard.push('\n');
            if line.contains(part) {
                return line;
            }
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it was started here");
    }

    /// SIGTERM; the exit code.
    pub(crate) fn terminate(&mut self) -> i32 {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(sent.expect("kill(1) is there").success());
        self.wait()
    }

    /// Waits for its end; the exit code.
    pub(crate) fn wait(&mut self) -> i32 {
        // The pipe closes when the process ends.
        while self.out.recv_timeout(PATIENCE).is_ok() {}
        self.child.wait().expect("it was started here").code().unwrap_or(-1)
    }

    /// Everything said so far and, after the end, everything there is.
    pub(crate) fn rest_of_talk(&mut self) -> String {
        while let Ok(line) = self.talk.try_recv() {
            self.heard.push_str(&line);
            self.heard.push('\n');
        }
        self.heard.clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A simulated account behind HTTP.
pub(crate) struct Simulator {
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) group: String,
    pub(crate) domain: String,
    pub(crate) links: i64,
    pub(crate) slugs: i64,
    _process: Process,
}

impl Simulator {
    pub(crate) fn start(count: u64, more: &[&str]) -> Self {
        Self::start_at(count, more, "127.0.0.1:0")
    }

    fn start_at(count: u64, more: &[&str], listen: &str) -> Self {
        let count = count.to_string();
        let mut command = bare(&["simulate", "bitly", "--count", &count, "--listen", listen]);
        let mut process = Process::start(command.args(more));
        let ready: Value = serde_json::from_str(&process.line()).expect("the first line is JSON");
        let text = |key: &str| ready[key].as_str().unwrap_or_else(|| panic!("{key}: {ready}")).to_owned();
        Self {
            url: text("url"),
            token: text("token"),
            group: text("group"),
            domain: text("domain"),
            links: ready["links"].as_i64().expect("a number"),
            slugs: ready["slugs"].as_i64().expect("a number"),
            _process: process,
        }
    }

    /// The cursors of the list calls so far; those of first pages, and of the samples with which the size of an account
    /// is estimated, are empty.
    fn cursors(&self) -> Vec<String> {
        let address = self.url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        let bearer = format!("Bearer {}", self.token);
        let answer = ask(address, "GET", "/__simulator/stats", &[("Authorization", &bearer)], None);
        let lists = answer.json()["lists"].take();
        let cursors = lists
            .as_array()
            .expect("a list")
            .iter()
            .map(|call| call["cursor"].as_str().expect("a text").to_owned());
        cursors.collect()
    }

    /// How many list calls it has answered.
    pub(crate) fn list_calls(&self) -> usize {
        self.cursors().len()
    }

    /// How many of them asked for a page behind the first.
    pub(crate) fn pages_asked(&self) -> usize {
        self.cursors().iter().filter(|cursor| !cursor.is_empty()).count()
    }
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// One request on a connection of its own.
pub(crate) fn ask(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Answer {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit can be set");
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request.push_str(&format!("Host: {address}\r\n"));
    }
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(body) = body {
        let body = body.to_string();
        request.push_str(&format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
    } else if method == "GET" {
        request.push_str("\r\n");
    } else {
        request.push_str("Content-Length: 0\r\n\r\n");
    }
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the answer is read");
    let answer = String::from_utf8(answer).expect("the answer is text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("a whole answer: {answer}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line");
    Answer { status, head: head.to_owned(), body: unchunked(head, body) }
}

fn unchunked(head: &str, body: &str) -> String {
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut rest, mut whole) = (body, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk has a size");
        if size == 0 {
            break;
        }
        whole.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    whole
}
