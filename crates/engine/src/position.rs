//! Where in a source one is: the beginning, at a cursor, or at the end.

use std::fmt;

/// A position that only its source understands. The engine stores and compares it and never looks inside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor(String);

/// A cursor longer than this is an error of the source, not something to store.
const CURSOR_BYTES_MAX: usize = 16 * 1024;

/// Why a text is no [`Cursor`] or no stored [`Position`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PositionError {
    /// The source gave a cursor of more than 16 KiB.
    #[error("a cursor of {0} bytes is longer than {CURSOR_BYTES_MAX}")]
    TooLong(usize),
    /// A stored position of an unknown form, for example from a newer version.
    #[error("'{0}' is not a stored position this version can read")]
    Unreadable(String),
}

impl Cursor {
    /// Takes a cursor as the source gave it. The empty text is a cursor like any other.
    pub fn new(text: impl Into<String>) -> Result<Self, PositionError> {
        let text = text.into();
        if text.len() > CURSOR_BYTES_MAX { Err(PositionError::TooLong(text.len())) } else { Ok(Self(text)) }
    }

    /// The source's own text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The beginning, a cursor, or the end. The end is a value of its own, which only a source's answer can give;
/// an error never looks like it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Position {
    /// Nothing has been asked yet.
    Beginning,
    /// The next page begins here.
    At(Cursor),
    /// The source said that there is no more.
    End,
}

impl Position {
    /// As stored: a version, a tag and the cursor.
    pub fn to_stored(&self) -> String {
        match self {
            Self::Beginning => "1:beginning".into(),
            Self::At(cursor) => format!("1:at:{}", cursor.as_str()),
            Self::End => "1:end".into(),
        }
    }

    /// Reads what [`Position::to_stored`] wrote.
    pub fn from_stored(text: &str) -> Result<Self, PositionError> {
        match text {
            "1:beginning" => Ok(Self::Beginning),
            "1:end" => Ok(Self::End),
            _ => match text.strip_prefix("1:at:") {
                Some(cursor) => Cursor::new(cursor).map(Self::At),
                None => Err(PositionError::Unreadable(text.chars().take(40).collect())),
            },
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beginning => f.write_str("the beginning"),
            Self::At(cursor) => {
                write!(f, "cursor '{}'", cursor.as_str().chars().take(60).collect::<String>())
            }
            Self::End => f.write_str("the end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_position_comes_back_whatever_the_cursor_holds() {
        for position in [
            Position::Beginning,
            Position::End,
            Position::At(Cursor::new("").unwrap()),
            Position::At(Cursor::new("end").unwrap()),
            Position::At(Cursor::new("1:at:x\n☃").unwrap()),
        ] {
            assert_eq!(Position::from_stored(&position.to_stored()).unwrap(), position);
        }
        assert!(Position::from_stored("2:at:x").is_err());
    }
}
