//! Links that only this server can make: they open one page until a given time, without an account.

use std::fmt;

use db::Timestamp;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Separates what is signed here from anything else that the same key may sign.
const PURPOSE: &[u8] = b"crossdock page v1\0";

/// The server's key for signed links. All nodes of one installation share it. Never shown by `Debug`.
#[derive(Clone)]
pub struct PageKey([u8; 32]);

impl PageKey {
    /// From 32 random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The address of a page under the public URL (without a slash at its end), valid until `expires`, to the second.
    ///
    /// ```
    /// # use crossdock_http::PageKey;
    /// let address = PageKey::new([7; 32]).link("https://links.example.com", "/imports/abc", db::Timestamp::from_micros(0));
    /// assert!(address.starts_with("https://links.example.com/imports/abc?expires=0&sig="));
    /// ```
    pub fn link(&self, public_url: &str, path: &str, expires: Timestamp) -> String {
        let seconds = expires.seconds();
        format!(
            "{}{path}?expires={seconds}&sig={}",
            public_url.trim_end_matches('/'),
            self.signature(path, seconds)
        )
    }

    /// What opens a path until then, in seconds since 1970.
    pub(crate) fn signature(&self, path: &str, expires: i64) -> String {
        hex(&self.sign(path, expires))
    }

    /// Whether the signature is this key's for the path, and not past its time. Takes the same time whatever is wrong
    /// with the signature.
    pub(crate) fn allows(&self, path: &str, expires: i64, signature: &str, now: Timestamp) -> bool {
        let Some(given) = from_hex(signature) else { return false };
        let genuine = self.mac(path, expires).verify_slice(&given).is_ok();
        genuine && now.seconds() < expires
    }

    fn sign(&self, path: &str, expires: i64) -> Vec<u8> {
        self.mac(path, expires).finalize().into_bytes().to_vec()
    }

    fn mac(&self, path: &str, expires: i64) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(PURPOSE);
        mac.update(&expires.to_be_bytes());
        mac.update(path.as_bytes());
        mac
    }
}

impl fmt::Debug for PageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PageKey(…)")
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        use fmt::Write;
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_link_opens_its_page_until_its_time_and_nothing_else() {
        let key = PageKey::new([1; 32]);
        let sig = key.signature("/imports/a", 1000);
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        assert!(key.allows("/imports/a", 1000, &sig, at(999)));
        assert!(!key.allows("/imports/a", 1000, &sig, at(1000)));
        assert!(!key.allows("/imports/b", 1000, &sig, at(999)));
        assert!(!key.allows("/imports/a", 1001, &sig, at(999)));
        assert!(!PageKey::new([2; 32]).allows("/imports/a", 1000, &sig, at(999)));
        for wrong in ["", "00", &sig[1..], &sig.replace(&sig[..1], "x"), &"é".repeat(32)] {
            assert!(!key.allows("/imports/a", 1000, wrong, at(999)), "{wrong}");
        }
    }

    #[test]
    fn the_key_is_not_shown() {
        assert_eq!(format!("{:?}", PageKey::new([7; 32])), "PageKey(…)");
    }
}
