//! API tokens: their form, which scanners can recognise and check, and what they may do.

use std::fmt;
use std::str::FromStr;

use rand::RngCore;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::values::ValueError;

const PREFIX: &str = "cdk_";
/// 160 random bits in base 32.
const SECRET_LENGTH: usize = 32;
const SECRET_BYTES: usize = 20;
/// 32 bits of CRC-32 in base 32.
const CHECKSUM_LENGTH: usize = 7;
/// How much of a token is shown in lists.
const SHOWN_LENGTH: usize = 8;
/// Crockford's base 32, lower case.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A secret that stands for a workspace's service account: `cdk_`, 32 characters (160 random bits), 7 characters
/// (CRC-32 of those), so that a scanner can tell a token from a look-alike without asking.
///
/// Stored is its SHA-256 alone. `Debug` shows the beginning only.
#[derive(Clone)]
pub struct ApiToken(String);

/// Text that is not a token: another form, or a checksum that does not match (a typing error).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a Crossdock API token")]
pub struct TokenError;

impl ApiToken {
    /// A new token.
    pub fn generate(chance: &mut dyn RngCore) -> Self {
        let mut bytes = [0u8; SECRET_BYTES];
        chance.fill_bytes(&mut bytes);
        let mut secret = String::with_capacity(SECRET_LENGTH);
        for five in bytes.chunks_exact(5) {
            let number = five.iter().fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
            push_base32(&mut secret, number, 8);
        }
        Self(format!("{PREFIX}{secret}{}", checksum(&secret)))
    }

    /// The token's text: shown once, when it is made.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The beginning, by which people recognise it.
    pub fn shown(&self) -> &str {
        &self.0[..SHOWN_LENGTH]
    }

    /// What is stored.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }

    /// Compares with a stored hash in constant time.
    pub fn matches(&self, hash: &[u8]) -> bool {
        self.hash().ct_eq(hash).into()
    }
}

impl FromStr for ApiToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let body = text.strip_prefix(PREFIX).ok_or(TokenError)?;
        if body.len() != SECRET_LENGTH + CHECKSUM_LENGTH || !body.bytes().all(|byte| ALPHABET.contains(&byte))
        {
            return Err(TokenError);
        }
        let (secret, given) = body.split_at(SECRET_LENGTH);
        if checksum(secret) != given {
            return Err(TokenError);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiToken({}…)", self.shown())
    }
}

fn checksum(secret: &str) -> String {
    let mut text = String::with_capacity(CHECKSUM_LENGTH);
    push_base32(&mut text, u64::from(crc32(secret.as_bytes())), CHECKSUM_LENGTH);
    text
}

fn push_base32(text: &mut String, number: u64, digits: usize) {
    for digit in (0..digits).rev() {
        let five = (number >> (5 * digit)) & 31;
        text.push(char::from(ALPHABET[usize::try_from(five).expect("five bits fit")]));
    }
}

/// CRC-32 as in ISO 3309 and zlib.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// `links:read`
    LinksRead,
    /// `links:write`
    LinksWrite,
    /// `domains:*`
    Domains,
    /// `imports:*`
    Imports,
    /// `analytics:read`
    AnalyticsRead,
    /// `tokens:*`
    Tokens,
    /// `jobs:read`: the workspace's imports and also the jobs that belong to no workspace. For those who run the
    /// installation.
    JobsRead,
}

impl Scope {
    /// Every scope: an administrator's.
    pub const ALL: [Self; 7] = [
        Self::LinksRead,
        Self::LinksWrite,
        Self::Domains,
        Self::Imports,
        Self::AnalyticsRead,
        Self::Tokens,
        Self::JobsRead,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LinksRead => "links:read",
            Self::LinksWrite => "links:write",
            Self::Domains => "domains:*",
            Self::Imports => "imports:*",
            Self::AnalyticsRead => "analytics:read",
            Self::Tokens => "tokens:*",
            Self::JobsRead => "jobs:read",
        }
    }
}

impl FromStr for Scope {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or_else(|| {
            ValueError::new(
                "scope",
                text,
                "links:read, links:write, domains:*, imports:*, analytics:read, tokens:*, jobs:read",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn token() -> ApiToken {
        ApiToken::generate(&mut rand::rngs::StdRng::seed_from_u64(7))
    }

    #[test]
    fn a_token_is_its_own_text_and_one_wrong_character_is_noticed() {
        let token = token();
        assert_eq!(token.reveal().len(), 43);
        assert!(token.reveal().parse::<ApiToken>().unwrap().matches(&token.hash()));
        for place in 4..token.reveal().len() {
            let mut text = token.reveal().to_owned().into_bytes();
            text[place] = if text[place] == b'0' { b'1' } else { b'0' };
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.parse::<ApiToken>().unwrap_err(), TokenError, "{place}");
        }
        for text in ["", "cdk_", "cdk_ü", &token.reveal()[1..], &token.reveal().to_uppercase()] {
            assert!(text.parse::<ApiToken>().is_err(), "{text}");
        }
    }

    #[test]
    fn tokens_differ_and_match_only_themselves() {
        let mut chance = rand::rngs::StdRng::seed_from_u64(1);
        let (a, b) = (ApiToken::generate(&mut chance), ApiToken::generate(&mut chance));
        assert_ne!(a.reveal(), b.reveal());
        assert!(!a.matches(&b.hash()));
        assert!(!a.matches(&[]));
    }

    #[test]
    fn debug_output_hides_the_secret() {
        let token = token();
        assert_eq!(format!("{token:?}"), format!("ApiToken({}…)", &token.reveal()[..8]));
    }

    #[test]
    fn the_checksum_is_the_usual_crc32() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
