//! An import as answers show it.

use engine::store::history::SegmentLine;
use imports::{ImportReport, LogEntry};
use serde::Serialize;

use crate::api::{Api, PAGE_LIFE};

/// An import with its counters, and the address of its progress page.
#[derive(Debug, Serialize)]
pub(crate) struct ImportView {
    #[serde(flatten)]
    report: ImportReport,
    /// Opens without an account, for a week from now.
    page_url: String,
}

/// All of an import: its counters, its history, its error log.
#[derive(Debug, Serialize)]
pub(crate) struct WholeView {
    #[serde(flatten)]
    pub(crate) view: ImportView,
    pub(crate) history: Vec<SegmentLine>,
    pub(crate) error_log: Vec<LogEntry>,
    /// Links that came over without some of what they had at the source, and those that look like earlier ones.
    pub(crate) remarks: Vec<LogEntry>,
}

impl ImportView {
    pub(crate) fn new(api: &Api, report: ImportReport) -> Self {
        let path = format!("/imports/{}", report.id);
        let page_url = api.page_key.link(&api.rendering.public_url, &path, api.clock.now().plus(PAGE_LIFE));
        Self { report, page_url }
    }
}
