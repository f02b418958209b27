//! Lists: pages by cursor.

use db::Id;
use serde::Serialize;

use crate::problem::Problem;

/// Objects on a page unless the caller asks for fewer or more.
const PAGE_SIZE: i64 = 50;
/// At most.
pub(crate) const PAGE_SIZE_MAX: i64 = 200;
/// Of the cursor's form, so that an old cursor is still readable when the form changes.
const CURSOR_VERSION: &str = "c1.";

/// One page. `next_cursor` is null on the last one.
#[derive(Debug, Serialize)]
pub(crate) struct Page<T> {
    pub(crate) data: Vec<T>,
    pub(crate) next_cursor: Option<String>,
}

/// The cursor behind the object with this id.
pub(crate) fn cursor(id: Id) -> String {
    format!("{CURSOR_VERSION}{id}")
}

/// The id in a cursor that [`cursor`] gave.
pub(crate) fn after(cursor: Option<&str>) -> Result<Option<Id>, Problem> {
    let Some(cursor) = cursor else { return Ok(None) };
    let id = cursor.strip_prefix(CURSOR_VERSION).and_then(|text| text.parse().ok());
    id.map(Some)
        .ok_or_else(|| Problem::field("cursor", "invalid_cursor", "the cursor is none of this server's"))
}

/// The size of the page.
pub(crate) fn size(asked: Option<i64>) -> Result<i64, Problem> {
    match asked {
        None => Ok(PAGE_SIZE),
        Some(size) if (1..=PAGE_SIZE_MAX).contains(&size) => Ok(size),
        Some(_) => Err(Problem::field(
            "limit",
            "out_of_range",
            format!("the limit is between 1 and {PAGE_SIZE_MAX}"),
        )),
    }
}
