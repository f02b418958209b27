//! JSON pointers (RFC 6901).

use std::collections::BTreeMap;
use std::fmt;

/// A parsed JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// The pointer to the whole document.
    pub fn root() -> Self {
        Self(Vec::new())
    }

    /// Reads a pointer such as `/data/amount`; `~1` stands for `/`, `~0` for `~`.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::root());
        }
        let rest = text.strip_prefix('/').ok_or("it begins with `/`")?;
        rest.split('/')
            .map(|token| {
                let mut out = String::with_capacity(token.len());
                let mut chars = token.chars();
                while let Some(c) = chars.next() {
                    match (c, c == '~') {
                        (c, false) => out.push(c),
                        (_, true) => match chars.next() {
                            Some('0') => out.push('~'),
                            Some('1') => out.push('/'),
                            _ => return Err("`~` is followed by `0` or `1`".to_owned()),
                        },
                    }
                }
                Ok(out)
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }

    /// The names on the way.
    pub fn tokens(&self) -> &[String] {
        &self.0
    }
}

/// Pointers as a walk over a document meets them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    /// The pointers that end right here, by their place in the list that the tree was made of.
    pub(crate) leaves: Vec<usize>,
    /// What goes on below, by name.
    pub(crate) children: BTreeMap<String, Tree>,
}

impl Tree {
    /// Of pointers, in this order.
    pub(crate) fn of<'p>(pointers: impl IntoIterator<Item = &'p Pointer>) -> Self {
        let mut tree = Self::default();
        for (index, pointer) in pointers.into_iter().enumerate() {
            let mut node = &mut tree;
            for token in pointer.tokens() {
                node = node.children.entry(token.clone()).or_default();
            }
            node.leaves.push(index);
        }
        tree
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|token| write!(f, "/{}", token.replace('~', "~0").replace('/', "~1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_of_the_standard_come_back() {
        for text in ["", "/foo", "/foo/0", "/", "/a~1b", "/c%d", "/ ", "/m~0n", "/~01"] {
            assert_eq!(Pointer::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Pointer::parse("/a~1b/m~0n").unwrap().tokens(), ["a/b", "m~n"]);
        for text in ["foo", "#/foo", "/a~", "/a~2"] {
            assert!(Pointer::parse(text).is_err(), "{text}");
        }
    }
}
