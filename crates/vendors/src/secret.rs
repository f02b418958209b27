//! A vendor's token while a job needs it: in memory only, never shown, overwritten when dropped.

use std::fmt;

use async_trait::async_trait;
use http::{HeaderName, HeaderValue};
use upstream::Credentials;
use zeroize::Zeroizing;

/// A secret that can be used but not printed.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a secret; blanks around it, as pasting leaves them, are removed.
    pub fn new(text: impl Into<String>) -> Self {
        let text = Zeroizing::new(text.into());
        Self(Zeroizing::new(text.trim().to_owned()))
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
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
        let text = Zeroizing::new(format!("{}{}", self.scheme, self.secret.0.as_str()));
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
    async fn a_token_that_cannot_be_sent_is_refused_without_being_shown() {
        for bad in ["", " \n", "s3cr\u{0}3t", "s3cr\n3t"] {
            let refused = SecretHeader::bearer(Secret::new(bad)).header().await.unwrap_err();
            assert!(!refused.contains("s3cr"), "{refused}");
        }
    }
}
