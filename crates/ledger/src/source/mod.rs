//! Where records come from: a paginated API or a file.

pub mod file;
pub mod http;
mod page;
mod parts;
mod secret;

pub use file::FileSource;
pub use http::{Around, HttpPages};
