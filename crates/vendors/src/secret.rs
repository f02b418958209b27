//! Sends a vendor's token.

use async_trait::async_trait;
use http::{HeaderName, HeaderValue};
use imports::Token;
use upstream::Credentials;
use zeroize::Zeroizing;

/// Sends a secret in one header, put together afresh for every attempt so that it is kept in one place only.
pub(crate) struct SecretHeader {
    name: HeaderName,
    scheme: &'static str,
    secret: Token,
}

impl SecretHeader {
    /// `Authorization: Bearer <secret>`.
    pub(crate) fn bearer(secret: Token) -> Self {
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
        let secret = Token::new(" s3cr3t\n");
        assert!(!format!("{secret:?}").contains("s3cr3t"));
        let (name, value) = SecretHeader::bearer(secret).header().await.unwrap().unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("authorization", &b"Bearer s3cr3t"[..]));
        assert!(!format!("{value:?}").contains("s3cr3t"));
    }

    #[tokio::test]
    async fn a_token_that_is_replaced_is_sent_from_then_on() {
        let kept = Token::new("old");
        let header = SecretHeader::bearer(kept.clone());
        let sent = async || header.header().await.map(|sent| sent.unwrap().1);
        assert_eq!(sent().await.unwrap().as_bytes(), b"Bearer old");
        kept.replace(&Token::new(" new\n"));
        assert_eq!(sent().await.unwrap().as_bytes(), b"Bearer new");
        kept.replace(&Token::new(" "));
        assert!(kept.is_empty() && sent().await.is_err());
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_sent_is_refused_without_being_shown() {
        for bad in ["", " \n", "s3cr\u{0}3t", "s3cr\n3t"] {
            let refused = SecretHeader::bearer(Token::new(bad)).header().await.unwrap_err();
            assert!(!refused.contains("s3cr"), "{refused}");
        }
    }
}
