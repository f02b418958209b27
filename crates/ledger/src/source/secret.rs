//! Credentials of a source: read afresh for every attempt, kept nowhere.

use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use tokio::io::AsyncReadExt as _;
use upstream::{Credentials, HeaderName, HeaderValue};
use zeroize::Zeroizing;

use crate::declaration::{Auth, AuthKind, SecretFrom};

/// A command that gives a secret has this long for it.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(30);
/// More bytes than any secret.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// Sends what the declaration names.
pub(super) struct Secret {
    auth: Auth,
}

impl Secret {
    pub(super) fn new(auth: Auth) -> Self {
        Self { auth }
    }

    /// Whether this machine has the secret at all. A worker without it processes and never fetches.
    pub(super) fn is_here(auth: &Auth) -> bool {
        match &auth.secret {
            SecretFrom::Env(name) => std::env::var_os(name).is_some_and(|value| !value.is_empty()),
            SecretFrom::File(path) => std::fs::File::open(path).is_ok(),
            SecretFrom::Command(command) => is_program(&command[0]),
        }
    }

    async fn read(&self) -> Result<Zeroizing<String>, String> {
        let text = match &self.auth.secret {
            SecretFrom::Env(name) => {
                Zeroizing::new(std::env::var(name).map_err(|_| format!("the variable {name} is not set"))?)
            }
            SecretFrom::File(path) => {
                let file = tokio::fs::File::open(path).await.map_err(|error| format!("{path}: {error}"))?;
                first_text(file).await.map_err(|error| format!("{path}: {error}"))?
            }
            SecretFrom::Command(command) => run(command).await?,
        };
        let line = text.lines().next().unwrap_or_default().trim();
        if line.is_empty() {
            Err("the secret is empty".to_owned())
        } else {
            Ok(Zeroizing::new(line.to_owned()))
        }
    }
}

#[async_trait]
impl Credentials for Secret {
    async fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, String> {
        let secret = self.read().await?;
        let (name, text) = match &self.auth.kind {
            AuthKind::Bearer => ("authorization", Zeroizing::new(format!("Bearer {}", *secret))),
            AuthKind::Header(name) => (name.as_str(), secret),
            AuthKind::Basic(user) => {
                let pair = Zeroizing::new(format!("{user}:{}", *secret));
                let coded = Zeroizing::new(base64::engine::general_purpose::STANDARD.encode(pair.as_bytes()));
                ("authorization", Zeroizing::new(format!("Basic {}", *coded)))
            }
        };
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is no name of a header"))?;
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| "the secret holds characters that a header cannot carry".to_owned())?;
        value.set_sensitive(true);
        Ok(Some((name, value)))
    }
}

async fn first_text(from: impl tokio::io::AsyncRead + Unpin) -> std::io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    from.take(SECRET_BYTES_MAX).read_to_string(&mut text).await?;
    Ok(text)
}

/// What a command prints. What it writes to its error output is shown to nobody: it may quote the secret.
async fn run(command: &[String]) -> Result<Zeroizing<String>, String> {
    let (program, arguments) = command.split_first().ok_or("no command is named")?;
    let fault = |what: String| format!("the command {program} {what}");
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| fault(format!("cannot be run: {error}")))?;
    let stdout = child.stdout.take().ok_or_else(|| fault("gives no output".to_owned()))?;
    let work = async {
        let text = first_text(stdout).await.map_err(|error| fault(format!("gives no text: {error}")))?;
        let status = child.wait().await.map_err(|error| fault(format!("did not end: {error}")))?;
        if status.success() { Ok(text) } else { Err(fault(format!("ended with {status}"))) }
    };
    match tokio::time::timeout(COMMAND_TIME_MAX, work).await {
        Ok(done) => done,
        Err(_) => Err(fault(format!("took longer than {} s", COMMAND_TIME_MAX.as_secs()))),
    }
}

fn is_program(name: &str) -> bool {
    if name.contains('/') {
        return std::path::Path::new(name).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}
