use super::*;
use crate::declaration::{Folder, Variables};

const PIPELINE: &str = r#"
name = "logs"
[source]
file = "x"
[record]
id = "id"
reference = "L-{id}"
[fields.id]
pointer = "/id"
type = "text"
[fields.memo]
pointer = "/memo"
type = "text"
nullable = true
optional = true
[fields.channel]
pointer = "/metadata/channel"
type = "text"
default = "none"
[fields.metadata]
pointer = "/metadata"
type = "json"
optional = true
[fields.second]
pointer = "/tags/1"
type = "bigint"
optional = true
[target]
table = "t"
key = ["reference"]
"#;

fn reader() -> RecordReader {
    let folder =
        Folder::of([("pipeline.toml", PIPELINE), ("map.sql", "SELECT 1"), ("proof.sql", "SELECT 1")]);
    RecordReader::new(&Declaration::read(&folder, &Variables::default()).unwrap())
}

/// Fields by name: channel, id, memo, metadata, second.
fn values(raw: &str) -> Vec<String> {
    let reader = reader();
    let row = reader.read(raw.as_bytes()).unwrap();
    let shown = |(value, presence): (&Value<'_>, &Presence)| {
        format!("{}:{}", presence.as_str(), value.canonical().unwrap_or("NULL".into()))
    };
    row.values.iter().zip(&row.presences).map(shown).collect()
}

fn code(raw: &[u8]) -> (Option<String>, String) {
    let unreadable = reader().read(raw).unwrap_err();
    (unreadable.id, unreadable.reason.code.into_owned())
}

#[test]
fn missing_null_and_present_are_three_cases() {
    assert_eq!(
        values(r#"{"id":"a","memo":"x"}"#),
        ["missing:none", "present:a", "present:x", "missing:NULL", "missing:NULL"]
    );
    assert_eq!(values(r#"{"id":"a"}"#)[2], "missing:NULL");
    assert_eq!(values(r#"{"id":"a","memo":null}"#)[2], "null:NULL");
}

#[test]
fn nested_fields_and_elements_are_found_beside_their_parents() {
    assert_eq!(
        values(
            r#" {"tags":[7,9007199254740993],"id":1.0E+2,"metadata":{"z":1,"channel":"w\u0065b"},"other":{"id":"b"}} "#
        ),
        [
            "present:web",
            "present:1.0E+2",
            "missing:NULL",
            r#"present:{"z": 1, "channel": "web"}"#,
            "present:9007199254740993"
        ]
    );
    assert_eq!(values(r#"{"id":"a","metadata":7}"#)[..1], ["missing:none"]);
}

#[test]
fn a_record_that_cannot_be_read_keeps_its_id_where_it_has_one() {
    let none = || None;
    let some = || Some("a".to_owned());
    for (raw, id, expected) in [
        (&b"{\"id\":\"a\",\"memo\":\"\xff\"}"[..], none(), "invalid_utf8"),
        (b"{\"id\":\"a\"", none(), "not_json"),
        (b"{\"id\":\"a\"}{}", none(), "not_json"),
        (b"7", none(), "not_json"),
        (b"[]", none(), "missing_id"),
        (b"{}", none(), "missing_id"),
        (b"{\"id\":null}", none(), "missing_id"),
        (b"{\"id\":\"\"}", none(), "missing_id"),
        (b"{\"id\":{}}", none(), "wrong_type"),
        (b"{\"id\":\"a\",\"id\":\"b\"}", none(), "name_twice"),
        (b"{\"id\":\"a\",\"metadata\":{\"channel\":1,\"channel\":2}}", none(), "name_twice"),
        (b"{\"id\":\"a\",\"metadata\":{\"channel\":[]}}", some(), "wrong_type"),
        (b"{\"id\":\"a\",\"metadata\":{\"channel\":null}}", some(), "null_field"),
        (b"{\"id\":\"a\",\"memo\":\"\\ud835\"}", some(), "lone_surrogate"),
        (b"{\"id\":\"a\",\"tags\":[1,1.5]}", some(), "not_an_integer"),
    ] {
        assert_eq!(code(raw), (id, expected.to_owned()), "{}", String::from_utf8_lossy(raw));
    }
}
