//! SQLite's dialect. Sets travel as one JSON array of arrays, which `jsonb_each` turns into rows, so that the text of
//! every statement is fixed.

mod batch;
mod changes;
mod clicks;
mod domains;
mod links;
mod listing;
mod tokens;
mod undo;
mod workspaces;

pub(crate) use batch::*;
pub(crate) use changes::*;
pub(crate) use clicks::*;
pub(crate) use domains::*;
pub(crate) use links::*;
pub(crate) use listing::*;
pub(crate) use tokens::*;
pub(crate) use undo::*;
pub(crate) use workspaces::*;
