//! Vendors' tokens: in memory only.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use engine::JobId;
use zeroize::Zeroizing;

/// A vendor's token. `Debug` shows nothing of it, and its memory is overwritten when the last copy goes.
#[derive(Clone)]
pub struct Token(Arc<Zeroizing<String>>);

impl Token {
    /// Takes a token, without the white space that pasting adds.
    pub fn new(text: &str) -> Self {
        Self(Arc::new(Zeroizing::new(text.trim().to_owned())))
    }

    /// The token itself, for the header of a request and for nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether nothing is left after trimming.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
    /// Keeps a token for a job.
    pub fn put(&self, job: JobId, token: Token) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(job, token);
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
