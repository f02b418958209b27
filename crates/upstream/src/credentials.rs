//! Who we are, asked for afresh on every attempt.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderName, HeaderValue};

use crate::error::Error;

/// Gives the credential of each attempt.
///
/// It is asked after all waiting and right before sending, so a credential that ends during a long wait is
/// replaced in time. The value is sent to the client's own origin only, is marked sensitive, and is taken out
/// of every text that the client reports. Others may wait for the request meanwhile, so asking must end by
/// itself.
#[async_trait]
pub trait Credentials: Send + Sync + 'static {
    /// The header to send, or `None` to send none.
    ///
    /// # Errors
    /// A reason for people, without the secret; the request ends with [`Error::Credentials`].
    async fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, String>;

    /// Called once per request after a refusal (401), before the request is sent once more. If that is refused as
    /// well, and [`Credentials::header`] by then gives another value than the refused one, the request is sent a
    /// last time.
    ///
    /// # Errors
    /// As for [`Credentials::header`].
    async fn refresh(&self) -> Result<(), String> {
        Ok(())
    }
}

#[async_trait]
impl<C: Credentials + ?Sized> Credentials for Arc<C> {
    async fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, String> {
        (**self).header().await
    }

    async fn refresh(&self) -> Result<(), String> {
        (**self).refresh().await
    }
}

/// A credential that does not change, held in memory only.
#[derive(Clone)]
pub struct FixedHeader {
    name: HeaderName,
    value: HeaderValue,
}

impl FixedHeader {
    /// `Authorization: Bearer <token>`. Blanks around the token, as pasting leaves them, are removed.
    ///
    /// # Errors
    /// [`Error::Credentials`] if the token is empty or holds what a header cannot carry.
    pub fn bearer(token: &str) -> Result<Self, Error> {
        Self::checked(http::header::AUTHORIZATION, token, "Bearer ")
    }

    /// Any header with the secret as its whole value, such as `apikey: <key>`.
    ///
    /// # Errors
    /// As for [`FixedHeader::bearer`].
    pub fn raw(name: HeaderName, secret: &str) -> Result<Self, Error> {
        Self::checked(name, secret, "")
    }

    fn checked(name: HeaderName, secret: &str, scheme: &str) -> Result<Self, Error> {
        let refuse = |reason: &str| Error::Credentials { reason: reason.to_owned() };
        let secret = secret.trim();
        if secret.is_empty() {
            return Err(refuse("it is empty"));
        }
        let value = HeaderValue::from_str(&format!("{scheme}{secret}"));
        let mut value = value.map_err(|_| refuse("it holds characters that a header cannot carry"))?;
        value.set_sensitive(true);
        Ok(Self { name, value })
    }
}

impl fmt::Debug for FixedHeader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FixedHeader").field("name", &self.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl Credentials for FixedHeader {
    async fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, String> {
        Ok(Some((self.name.clone(), self.value.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_token_is_trimmed_and_never_printed() {
        let header = FixedHeader::bearer(" s3cr3t\n").unwrap();
        assert_eq!(header.value.as_bytes(), b"Bearer s3cr3t");
        assert!(!format!("{header:?} {:?}", header.value).contains("s3cr3t"));
        for bad in ["", "  ", "a\nb", "a\u{0}b"] {
            assert!(matches!(FixedHeader::bearer(bad), Err(Error::Credentials { .. })), "{bad:?}");
        }
    }
}
