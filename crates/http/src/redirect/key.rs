//! What an answer is found by: the domain and the slug as the domain compares it.

use std::hash::{Hash, Hasher};

use db::Id;
use links::{CaseMode, Slug};
use quick_cache::Equivalent;

/// The longest path that is looked up without taking it apart first.
const PLAIN_LENGTH_MAX: usize = links::SLUG_LENGTH_MAX;

/// An owned key, in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    domain: Id,
    slug: Box<str>,
}

/// A borrowed key, for looking up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked<'a> {
    pub(crate) domain: Id,
    pub(crate) slug: &'a str,
}

impl Asked<'_> {
    pub(crate) fn to_key(self) -> Key {
        Key { domain: self.domain, slug: self.slug.into() }
    }
}

impl Key {
    /// Bytes that the key keeps outside of itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.slug.len()
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Asked { domain: self.domain, slug: &self.slug }.hash(state);
    }
}

impl Hash for Asked<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_i64(self.domain.get());
        state.write(self.slug.as_bytes());
    }
}

impl Equivalent<Key> for Asked<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.domain == key.domain && *self.slug == *key.slug
    }
}

/// Room on the stack for a folded slug.
pub(crate) type Buffer = [u8; PLAIN_LENGTH_MAX];

/// The slug's compared form for a path that needs neither decoding nor normalising, which nearly all are.
/// `path` has lost its leading slash. What comes out may still be no slug; then no answer is kept for it.
pub(crate) fn plain<'a>(path: &'a str, case: CaseMode, buffer: &'a mut Buffer) -> Option<&'a str> {
    if path.len() > PLAIN_LENGTH_MAX || path.bytes().any(|byte| byte == b'%' || !byte.is_ascii()) {
        return None;
    }
    if case == CaseMode::Sensitive || !path.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some(path);
    }
    let folded = &mut buffer[..path.len()];
    folded.copy_from_slice(path.as_bytes());
    folded.make_ascii_lowercase();
    std::str::from_utf8(folded).ok()
}

/// The slug that a path asks for and its compared form, for paths of any kind; `None` if no slug has that path.
pub(crate) fn decoded(path: &str, case: CaseMode) -> Option<(Slug, String)> {
    let slug = Slug::from_path(path).ok()?;
    let compared = case.key(&slug).into_owned();
    Some((slug, compared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_form_is_the_decoded_form_wherever_it_is_given() {
        for path in ["a", "Sale", "a/B/", "v1.2", "a+b", "a&utm=x", "ö", "%41", "a%2Fb", "ABC-def_9~"] {
            for case in [CaseMode::Sensitive, CaseMode::Insensitive] {
                let mut buffer = [0; PLAIN_LENGTH_MAX];
                let full = decoded(&format!("/{path}"), case).map(|(_, compared)| compared);
                match plain(path, case, &mut buffer) {
                    Some(quick) => assert_eq!(Some(quick), full.as_deref(), "{path}"),
                    None => assert!(path.contains(['%', 'ö']), "{path}"),
                }
            }
        }
    }

    #[test]
    fn borrowed_and_owned_keys_meet() {
        let hash = |value: &dyn Fn(&mut std::hash::DefaultHasher)| {
            let mut hasher = std::hash::DefaultHasher::new();
            value(&mut hasher);
            hasher.finish()
        };
        let asked = Asked { domain: Id::from_stored(3), slug: "a/b" };
        let key = asked.to_key();
        assert!(asked.equivalent(&key));
        assert_eq!(hash(&|hasher| asked.hash(hasher)), hash(&|hasher| key.hash(hasher)));
        assert!(!Asked { domain: Id::from_stored(4), slug: "a/b" }.equivalent(&key));
    }
}
