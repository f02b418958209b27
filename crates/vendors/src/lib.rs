//! The sources that links are brought over from.
//!
//! Each vendor has a folder with the same four files: `mod` states its paging, limits and oddities with the
//! address of the documentation and the date it was read, `wire` is what it sends, `source` how we page, and
//! `map` what a record becomes. Beside the folders stand the tools they share, one subject each.
//!
//! This crate refuses to know databases, jobs, slugs' rules, conflicts and domains of ours: it hands on pages of
//! bytes ([`engine::Source`]) and reads one record at a time ([`imports::Mapper`]), and a job of the import brings
//! the two together. It never opens a connection itself; [`upstream`] does, politely.
//!
//! ```no_run
//! use crossdock_vendors::bitly::{Bitly, BitlyOptions};
//! use crossdock_vendors::Surroundings;
//! use imports::Token;
//!
//! # async fn example() -> Result<(), engine::SourceError> {
//! let options = BitlyOptions::new(Token::new("a token from a prompt"));
//! let bitly = Bitly::new(options, Surroundings::default())?;
//! println!("{}", bitly.survey().await?.calls);
//! # Ok(())
//! # }
//! ```

pub mod bitly;

mod secret;
mod surroundings;

mod split;
mod tolerant;

mod dates;
mod field;
mod mend;
mod provenance;
mod record;
mod short_url;
mod texts;

pub use surroundings::Surroundings;
