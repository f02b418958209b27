//! Reads the fields of a record one by one, so that a value of the wrong kind is named with its place.
//!
//! Absent and `null` are the same to all of these: vendors use both for "nothing".

use engine::Reason;
use serde_json::value::RawValue;

use crate::texts::excerpt;

/// A text.
pub(crate) fn text(raw: Option<&RawValue>, pointer: &str) -> Result<Option<String>, Reason> {
    let read =
        |raw: &RawValue| serde_json::from_str(raw.get()).map_err(|_| unexpected(raw, pointer, "a text"));
    raw.map_or(Ok(None), read)
}

/// A switch; off where the record does not say.
pub(crate) fn flag(raw: Option<&RawValue>, pointer: &str) -> Result<bool, Reason> {
    let read = |raw: &RawValue| {
        serde_json::from_str::<Option<bool>>(raw.get()).map_err(|_| unexpected(raw, pointer, "true or false"))
    };
    raw.map_or(Ok(None), read).map(Option::unwrap_or_default)
}

/// A list, without the `null`s in it, each element with its place.
pub(crate) fn list<'a>(
    raw: Option<&'a RawValue>,
    pointer: &str,
) -> Result<Vec<(String, &'a RawValue)>, Reason> {
    let Some(raw) = raw else { return Ok(Vec::new()) };
    let elements: Option<Vec<&RawValue>> =
        serde_json::from_str(raw.get()).map_err(|_| unexpected(raw, pointer, "a list"))?;
    let placed = elements.unwrap_or_default().into_iter().enumerate();
    Ok(placed
        .filter(|(_, element)| element.get() != "null")
        .map(|(place, element)| (format!("{pointer}/{place}"), element))
        .collect())
}

/// A list of texts, without the `null`s in it, each with its place.
pub(crate) fn texts(raw: Option<&RawValue>, pointer: &str) -> Result<Vec<(String, String)>, Reason> {
    let mut texts = Vec::new();
    for (place, element) in list(raw, pointer)? {
        let read = text(Some(element), &place)?.unwrap_or_default();
        texts.push((place, read));
    }
    Ok(texts)
}

/// Whether the field holds anything at all: not `null`, `false`, an empty text, list or object.
pub(crate) fn is_present(raw: Option<&RawValue>) -> bool {
    let Some(raw) = raw else { return false };
    let text: String = raw.get().split_ascii_whitespace().collect();
    !matches!(text.as_str(), "null" | "false" | "\"\"" | "[]" | "{}" | "[null]")
}

/// The reason for a value of the wrong kind.
pub(crate) fn unexpected(raw: &RawValue, pointer: &str, wanted: &str) -> Reason {
    Reason::new("unexpected_type", format!("{pointer} is not {wanted} but {}", excerpt(raw.get())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Option<&RawValue> {
        Some(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn absent_and_null_are_nothing() {
        for nothing in [None, raw("null")] {
            assert_eq!(text(nothing, "/a").unwrap(), None);
            assert!(!flag(nothing, "/a").unwrap());
            assert!(texts(nothing, "/a").unwrap().is_empty());
            assert!(!is_present(nothing));
        }
        for nothing in ["[]", "[ ]", "{}", "\"\"", "false", "[null]"] {
            assert!(!is_present(raw(nothing)), "{nothing}");
        }
        assert!(is_present(raw("[1]")) && is_present(raw("\"x y\"")) && is_present(raw("0")));
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_named_with_its_place() {
        let reasons = [
            text(raw("5"), "/title").unwrap_err(),
            flag(raw("\"yes\""), "/archived").unwrap_err(),
            texts(raw("{\"a\":1}"), "/tags").unwrap_err(),
            texts(raw("[\"a\",null,7]"), "/tags").unwrap_err(),
        ];
        let details: Vec<&str> = reasons.iter().map(|reason| reason.detail.as_str()).collect();
        let expected = [
            "/title is not a text but 5",
            "/archived is not true or false but \"yes\"",
            "/tags is not a list but {\"a\":1}",
            "/tags/2 is not a text but 7",
        ];
        assert_eq!(details, expected);
        assert!(reasons.iter().all(|reason| reason.code == "unexpected_type"));
    }
}
