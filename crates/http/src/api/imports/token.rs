//! A vendor's token in a body.

use imports::Token;
use serde::{Deserialize, Deserializer};

/// A token as pasted. Neither `Debug` nor an error of its reading shows anything of it.
#[derive(Debug)]
pub(crate) struct Pasted(pub(crate) Token);

impl<'de> Deserialize<'de> for Pasted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // serde's own message for another type would repeat the value.
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => {
                let token = Token::new(&text);
                if token.is_empty() {
                    Err(serde::de::Error::custom("the token is empty"))
                } else {
                    Ok(Self(token))
                }
            }
            _ => Err(serde::de::Error::custom("the token must be a string")),
        }
    }
}
