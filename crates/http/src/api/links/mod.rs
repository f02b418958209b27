//! `/v1/links`

pub(crate) mod create;
pub(crate) mod delete;
mod fields;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod update;
mod view;
