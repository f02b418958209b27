//! Bringing links over: what an incoming link is, and the import's contract.

mod incoming;

pub use incoming::{Incoming, IncomingAddress, IncomingLink, Mapper, Unreadable};
