//! A vendor's token while a job needs it: in memory only, never shown, overwritten when dropped or replaced.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use http::{HeaderName, HeaderValue};
use upstream::Credentials;
use zeroize::Zeroizing;

/// A secret that can be used but not printed.
///
/// Clones share one cell: whoever kept one can [replace](Secret::replace) the secret while a source uses another,
/// and every attempt from then on is made with the new one, also one that was refused and is made again.
#[derive(Clone)]
pub struct Secret(Arc<RwLock<Zeroizing<String>>>);

impl Secret {
    /// Takes a secret; blanks around it, as pasting leaves them, are removed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Arc::new(RwLock::new(trimmed(text.into()))))
    }

    /// Puts another secret in its place, for all clones. The old one is overwritten.
    pub fn replace(&self, text: impl Into<String>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = trimmed(text.into());
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.with(str::is_empty)
    }

    fn with<T>(&self, read: impl FnOnce(&str) -> T) -> T {
        read(self.0.read().unwrap_or_else(PoisonError::into_inner).as_str())
    }
}

fn trimmed(text: String) -> Zeroizing<String> {
    let text = Zeroizing::new(text);
    Zeroizing::new(text.trim().to_owned())
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret([redacted])")
    }
}

/// Sends a secret in one header, put together afresh for every attempt so that it is kept in one place only.
pub(crate) struct SecretHeader {
    name: HeaderName,
    scheme: &'static str,
    secret: Secret,
}

impl SecretHeader {
    /// `Authorization: Bearer <secret>`.
    pub(crate) fn bearer(secret: Secret) -> Self {
        Self { name: http::header::AUTHORIZATION, scheme: "Bearer ", secret }
    }
}

#[async_trait]
impl Credentials for SecretHeader {
    async fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, String> {
        if self.secret.is_empty() {
            return Err("the token is empty".to_owned());
        }
        let text = self.secret.with(|secret| Zeroizing::new(format!("{}{secret}", self.scheme)));
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| "the token holds characters that a header cannot carry".to_owned())?;
        value.set_sensitive(true);
        Ok(Some((self.name.clone(), value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pasted_token_is_trimmed_and_never_printed() {
        let secret = Secret::new(" s3cr3t\n");
        assert!(!format!("{secret:?}").contains("s3cr3t"));
        let (name, value) = SecretHeader::bearer(secret).header().await.unwrap().unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("authorization", &b"Bearer s3cr3t"[..]));
        assert!(!format!("{value:?}").contains("s3cr3t"));
    }

    #[tokio::test]
    async fn a_token_that_is_replaced_is_sent_from_then_on() {
        let kept = Secret::new("old");
        let header = SecretHeader::bearer(kept.clone());
        let sent = async || header.header().await.map(|sent| sent.unwrap().1);
        assert_eq!(sent().await.unwrap().as_bytes(), b"Bearer old");
        kept.replace(" new\n");
        assert_eq!(sent().await.unwrap().as_bytes(), b"Bearer new");
        kept.replace(" ");
        assert!(kept.is_empty() && sent().await.is_err());
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_sent_is_refused_without_being_shown() {
        for bad in ["", " \n", "s3cr\u{0}3t", "s3cr\n3t"] {
            let refused = SecretHeader::bearer(Secret::new(bad)).header().await.unwrap_err();
            assert!(!refused.contains("s3cr"), "{refused}");
        }
    }
}
