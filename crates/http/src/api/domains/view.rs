//! A domain as answers show it.

use db::{Id, Timestamp};
use links::Domain;
use serde::Serialize;

/// A domain.
#[derive(Debug, Serialize)]
pub(crate) struct DomainView {
    pub(crate) id: Id,
    host: String,
    case_mode: &'static str,
    root_redirect: Option<String>,
    fallback_url: Option<String>,
    expired_url: Option<String>,
    default_redirect_code: u16,
    /// Whether new links and imports go here unless told otherwise.
    default: bool,
    created_at: Timestamp,
    version: i64,
}

impl DomainView {
    pub(crate) fn new(domain: Domain, default: Option<Id>) -> Self {
        let settings = domain.settings;
        Self {
            id: domain.id,
            host: domain.host.to_string(),
            case_mode: settings.case_mode.as_str(),
            root_redirect: settings.root_redirect.map(|url| url.to_string()),
            fallback_url: settings.fallback_url.map(|url| url.as_str().to_owned()),
            expired_url: settings.expired_url.map(|url| url.to_string()),
            default_redirect_code: settings.default_redirect_code.number(),
            default: default == Some(domain.id),
            created_at: domain.created_at,
            version: domain.version,
        }
    }
}
