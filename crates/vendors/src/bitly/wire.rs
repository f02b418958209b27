//! What Bitly sends. Unknown fields are let pass everywhere; `null` is the same as absent.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::split::{self, Layout, Split, SplitError};

const LAYOUT: Layout = Layout { list: "links", siblings: &["pagination"], mark: "created_at" };

/// One link, each field as it stands, so that a value of the wrong kind can be named.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Link<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) custom_bitlinks: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) long_url: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) title: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tags: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) archived: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) is_deleted: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) created_at: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) expiration_at: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) dynamic_routing: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) deeplinks: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) qr_code_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) campaign_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) launchpad_ids: Option<&'a RawValue>,
}

/// One rule of `dynamic_routing`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Routing<'a> {
    pub(super) long_url: Option<String>,
    pub(super) country_match: Option<Vec<String>>,
    pub(super) os_match: Option<Vec<String>>,
    pub(super) device_match: Option<Vec<String>>,
    /// Every other condition, known or not.
    #[serde(flatten, borrow)]
    pub(super) others: std::collections::BTreeMap<Cow<'a, str>, Value>,
}

/// One entry of `deeplinks`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DeepLink {
    pub(super) os: Option<String>,
    pub(super) install_url: Option<String>,
    pub(super) install_type: Option<String>,
    pub(super) app_uri_path: Option<String>,
}

/// Where a page says that the walk goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// At this cursor; with the URL of the next page, if it was given.
    After {
        /// `search_after` as received.
        cursor: String,
        /// `next` as received.
        url: Option<String>,
    },
    /// Nowhere: both `search_after` and `next` are there and empty.
    End,
}

/// One answer of the list.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// The records as received.
    pub(super) records: Vec<&'a [u8]>,
    /// Where it goes on.
    pub(super) next: Next,
    /// How many links the group has; clients of the older API saw it, today it is absent.
    pub(super) total: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pagination<'a> {
    #[serde(borrow)]
    next: Option<&'a RawValue>,
    #[serde(borrow)]
    search_after: Option<&'a RawValue>,
    #[serde(borrow)]
    total: Option<&'a RawValue>,
}

/// Why a body is no page of the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PageError {
    #[error(transparent)]
    Split(#[from] SplitError),
    #[error("a page without `pagination`")]
    NoPagination,
    #[error("`pagination` is no object")]
    PaginationUnreadable,
    #[error("`pagination.{0}` is missing or null")]
    Missing(&'static str),
    #[error("`pagination.{0}` is no text")]
    NoText(&'static str),
    #[error("`pagination.next` and `pagination.search_after` contradict each other: only `{0}` is empty")]
    Contradiction(&'static str),
}

impl<'a> Page<'a> {
    /// Reads a page. The end is only what says so; everything doubtful is an error.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, PageError> {
        let split = split::split(body, &LAYOUT)?;
        let pagination = pagination(&split)?;
        let next = next(&pagination)?;
        let total = pagination.total.and_then(|total| total.get().parse().ok());
        Ok(Self { records: split.records, next, total })
    }
}

fn pagination<'a>(split: &Split<'a>) -> Result<Pagination<'a>, PageError> {
    let raw = split.sibling("pagination").filter(|raw| *raw != b"null").ok_or(PageError::NoPagination)?;
    serde_json::from_slice(raw).map_err(|_| PageError::PaginationUnreadable)
}

fn next(pagination: &Pagination<'_>) -> Result<Next, PageError> {
    let text = |raw: Option<&RawValue>, name| match raw {
        Some(raw) => serde_json::from_str::<String>(raw.get()).map(Some).map_err(|_| PageError::NoText(name)),
        None => Ok(None),
    };
    let cursor = text(pagination.search_after, "search_after")?.ok_or(PageError::Missing("search_after"))?;
    let url = text(pagination.next, "next")?;
    match (cursor.is_empty(), url.as_deref()) {
        (true, Some("")) => Ok(Next::End),
        (true, Some(_)) => Err(PageError::Contradiction("search_after")),
        (true, None) => Err(PageError::Missing("next")),
        (false, Some("")) => Err(PageError::Contradiction("next")),
        (false, _) => Ok(Next::After { cursor, url }),
    }
}

/// `GET /user`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct User {
    pub(super) login: Option<String>,
    pub(super) name: Option<String>,
}

/// `GET /groups`
#[derive(Debug, Deserialize)]
pub(super) struct Groups {
    pub(super) groups: Vec<Group>,
}

/// One group of links.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Group {
    pub(super) guid: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) organization_guid: Option<String>,
    /// The group's own domains; may be none at all.
    #[serde(default)]
    pub(super) bsds: Option<Vec<String>>,
    #[serde(default)]
    pub(super) created: Option<String>,
    #[serde(default)]
    pub(super) is_active: Option<bool>,
}

impl Group {
    /// Only a group that says so is inactive.
    pub(super) fn is_active(&self) -> bool {
        self.is_active.unwrap_or(true)
    }
}

/// `GET /user/platform_limits`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PlatformLimits {
    pub(super) platform_limits: Vec<PlatformLimit>,
}

/// The limits of one endpoint.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PlatformLimit {
    pub(super) endpoint: String,
    pub(super) methods: Vec<MethodLimit>,
}

/// The limit of one method of an endpoint.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MethodLimit {
    pub(super) name: String,
    pub(super) limit: Option<u64>,
    pub(super) count: Option<u64>,
}

/// `GET /organizations/{guid}/plan_limits`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PlanLimits {
    pub(super) plan_limits: Vec<PlanLimit>,
}

/// One limit of the plan.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PlanLimit {
    pub(super) name: String,
    pub(super) limit: Option<u64>,
    pub(super) count: Option<u64>,
}

/// The body of a refusal. Each field is read on its own, so that one of the wrong kind does not hide the others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ApiError {
    /// The machine's code.
    pub(super) message: Option<String>,
    /// The machine's code where the older API answers.
    pub(super) status_txt: Option<String>,
    /// For people.
    pub(super) description: Option<String>,
    pub(super) errors: Vec<FieldError>,
}

/// What is wrong with one parameter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FieldError {
    pub(super) field: Option<String>,
    pub(super) error_code: Option<String>,
    pub(super) message: Option<String>,
}

impl ApiError {
    /// What can be made out; nothing in a body that is no JSON.
    pub(super) fn read(body: &[u8]) -> Self {
        let body: Value = serde_json::from_str(&String::from_utf8_lossy(body)).unwrap_or_default();
        let errors = body.get("errors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Self {
            message: text(&body, "message"),
            status_txt: text(&body, "status_txt"),
            description: text(&body, "description"),
            errors: errors.iter().map(FieldError::read).collect(),
        }
    }
}

impl FieldError {
    fn read(error: &Value) -> Self {
        Self {
            field: text(error, "field"),
            error_code: text(error, "error_code"),
            message: text(error, "message"),
        }
    }
}

/// A field that is a text and not empty.
fn text(object: &Value, name: &str) -> Option<String> {
    object.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pagination: &str) -> Result<Next, PageError> {
        let body = format!(r#"{{"links":[]{pagination}}}"#);
        Page::read(body.as_bytes()).map(|page| page.next)
    }

    #[test]
    fn b2_b19_only_what_says_so_is_the_end() {
        let missing = PageError::Missing;
        for (pagination, expected) in [
            (r#","pagination":{"next":"","search_after":"","size":100}"#, Ok(Next::End)),
            (r#","pagination":{"next":"","search_after":""}"#, Ok(Next::End)),
            ("", Err(PageError::NoPagination)),
            (r#","pagination":null"#, Err(PageError::NoPagination)),
            (r#","pagination":[]"#, Err(PageError::Missing("search_after"))),
            (r#","pagination":5"#, Err(PageError::PaginationUnreadable)),
            (r#","pagination":{}"#, Err(missing("search_after"))),
            (r#","pagination":{"size":100}"#, Err(missing("search_after"))),
            (r#","pagination":{"next":""}"#, Err(missing("search_after"))),
            (r#","pagination":{"next":"","search_after":null}"#, Err(missing("search_after"))),
            (r#","pagination":{"search_after":""}"#, Err(missing("next"))),
            (r#","pagination":{"next":null,"search_after":""}"#, Err(missing("next"))),
            (r#","pagination":{"next":"","search_after":7}"#, Err(PageError::NoText("search_after"))),
            (r#","pagination":{"next":7,"search_after":"x"}"#, Err(PageError::NoText("next"))),
            (
                r#","pagination":{"next":"https://h/","search_after":""}"#,
                Err(PageError::Contradiction("search_after")),
            ),
            (r#","pagination":{"next":"","search_after":"x"}"#, Err(PageError::Contradiction("next"))),
            (
                r#","pagination":{"next":"","search_after":""},"pagination":{"next":"https://h/","search_after":"x"}"#,
                Err(PageError::Split(SplitError::Twice("pagination"))),
            ),
            (
                r#","pagination":{"next":"","next":"https://h/","search_after":""}"#,
                Err(PageError::PaginationUnreadable),
            ),
        ] {
            assert_eq!(read(pagination), expected, "{pagination}");
        }
    }

    #[test]
    fn a_total_that_is_no_count_is_passed_over() {
        for (total, expected) in [
            ("12", Some(12)),
            ("0", Some(0)),
            ("-5", None),
            ("\"12\"", None),
            ("1e3", None),
            ("null", None),
            ("true", None),
        ] {
            let body =
                format!(r#"{{"links":[],"pagination":{{"next":"","search_after":"","total":{total}}}}}"#);
            assert_eq!(Page::read(body.as_bytes()).unwrap().total, expected, "{total}");
        }
    }

    #[test]
    fn a_cursor_goes_on_even_with_an_empty_page() {
        let next =
            read(r#","pagination":{"next":"https://h/?search_after=x%2B","search_after":"x+","size":100}"#)
                .unwrap();
        assert_eq!(
            next,
            Next::After { cursor: "x+".into(), url: Some("https://h/?search_after=x%2B".into()) }
        );
    }
}
