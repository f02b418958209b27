//! Vendors' tokens: in memory only.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use engine::JobId;
use zeroize::Zeroizing;

/// A vendor's token. `Debug` shows nothing of it, and its memory is overwritten when it is replaced or the last copy
/// goes.
///
/// Copies share one cell: a token that is pasted while a job runs replaces the old one in the source that is at work, and
/// every request from then on is made with the new one, also one that was refused and is made again.
#[derive(Clone)]
pub struct Token(Arc<RwLock<Zeroizing<String>>>);

impl Token {
    /// Takes a token, without the white space that pasting adds.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::new(RwLock::new(Zeroizing::new(text.as_ref().trim().to_owned()))))
    }

    /// Puts another token in its place, for all copies.
    pub fn replace(&self, other: &Self) {
        let other = Zeroizing::new(other.with(str::to_owned));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = other;
    }

    /// Lends the token itself, for the header of a request and for nothing else.
    pub fn with<T>(&self, read: impl FnOnce(&str) -> T) -> T {
        read(self.0.read().unwrap_or_else(PoisonError::into_inner).as_str())
    }

    /// Whether nothing is left after trimming.
    pub fn is_empty(&self) -> bool {
        self.with(str::is_empty)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The tokens of the jobs of this process. Nothing of it outlives the process.
#[derive(Debug, Default)]
pub struct Vault(Mutex<HashMap<JobId, Token>>);

impl Vault {
    /// Keeps a token for a job. A source that works with an older one goes on with this one.
    pub fn put(&self, job: JobId, token: Token) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tokens.get(&job) {
            known.replace(&token);
        } else {
            tokens.insert(job, token);
        }
    }

    /// The token of a job, if this process was given one.
    pub fn get(&self, job: JobId) -> Option<Token> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&job).cloned()
    }

    /// Forgets the token of a job that is over or whose token was refused.
    pub fn forget(&self, job: JobId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
    }
}
