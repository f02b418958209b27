//! `/v1/imports`

pub(crate) mod create;
pub(crate) mod forecast;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod steer;
mod token;
pub(crate) mod verify;
mod view;
