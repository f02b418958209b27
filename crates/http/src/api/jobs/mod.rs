//! `/v1/jobs`

pub(crate) mod get;
pub(crate) mod list;
