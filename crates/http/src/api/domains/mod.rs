//! `/v1/domains`

pub(crate) mod create;
pub(crate) mod list;
mod view;
