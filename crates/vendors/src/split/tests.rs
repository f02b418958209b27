use proptest::prelude::*;
use serde_json::Value;

use super::*;

const LAYOUT: Layout = Layout { list: "links", siblings: &["pagination"], mark: "title" };

fn page(records: &[&str]) -> String {
    format!(r#"{{"links":[{}],"pagination":{{"next":"","search_after":"","size":100}}}}"#, records.join(","))
}

fn texts<'a>(split: &Split<'a>) -> Vec<&'a str> {
    split.records.iter().map(|record| std::str::from_utf8(record).unwrap()).collect()
}

#[test]
fn records_are_the_bytes_received() {
    let first = r#"{ "id" : "a/b" , "n": 1.50, "big": 9007199254740993 }"#;
    let body = format!("\u{feff} {}\n", page(&[first, "{}", "null"]));
    let split = split(body.as_bytes(), &LAYOUT).unwrap();
    assert_eq!(texts(&split), [first, "{}", "null"]);
    assert_eq!(split.sibling("pagination"), Some(&br#"{"next":"","search_after":"","size":100}"#[..]));
    assert_eq!(split.sibling("links"), None);
}

#[test]
fn what_is_no_page_is_named() {
    let cases: [(&str, SplitError); 16] = [
        ("", SplitError::Empty),
        (" \n", SplitError::Empty),
        ("<html>{}</html>", SplitError::Html),
        ("null", SplitError::NotAnObject("something that is no JSON")),
        ("[]", SplitError::NotAnObject("a list")),
        ("{}", SplitError::NoList("links")),
        (r#"{"message":"X"}"#, SplitError::NoList("links")),
        (r#"{"links":null}"#, SplitError::NotAList("links")),
        (r#"{"links":{"a":1}}"#, SplitError::NotAList("links")),
        (r#"{"links":[],"links":[]}"#, SplitError::Twice("links")),
        (r#"{"links":[],"l\u0069nks":[]}"#, SplitError::Twice("links")),
        (r#"{"pagination":{},"links":[],"pagination":{"next":"x"}}"#, SplitError::Twice("pagination")),
        (r#"{"links":[<err>],"pagination":{},"pagination":{}}"#, SplitError::Twice("pagination")),
        (r#"{"links":[]}{}"#, SplitError::Rubbish),
        (r#"{"links":[{"id":"a"}"#, SplitError::Cut),
        (r#"{"links":[{"id":"a"},{"id":"b"#, SplitError::Cut),
    ];
    for (body, expected) in cases {
        assert_eq!(split(body.as_bytes(), &LAYOUT).map(|_| ()), Err(expected), "{body}");
    }
}

#[test]
fn b5_one_bad_record_leaves_its_neighbours_whole() {
    let good: Vec<String> =
        (0..99).map(|n| format!(r#"{{"id":"h/{n}","title":"t{n}","tags":["x","y"]}}"#)).collect();
    for bad in [
        r#"{"id":"h/bad","title":"He said "hi", "bye": and {left}","archived":false}"#,
        r#"{"id":"h/bad","title":"A 7" single","archived":false}"#,
        r#"{"id":"h/bad","archived":false,"title":"ends "odd"}"#,
        r#"{"id":"h/bad","title":"brackets "}]} inside","tags":["a"b","c"]}"#,
        "{\"id\":\"h/bad\",\"title\":\"raw \u{1}\n\u{0} control\"}",
        r#"{"id":"h/bad","title":"C:\","archived":false}"#,
        r#"{"id":"h/bad","long_url":<!ERR upstream timed out!>,"title":"x","archived":fal,"tags":[,],"created_by"}"#,
        r#"{"id":"h/bad","n":<err>}"#,
        r#"{"id":"h/bad","n":}"#,
        r#"{"id":"h/bad","tags":["a","b"}"#,
        r#"{"id":"h/bad","references":{"group":"g"}"#,
        r#"{"id":"h/bad","n":[[[1}"#,
        r#"{"id":"h/bad","n":1]}"#,
        r#"{"id" "h/bad" "n" 1}"#,
        r#"{"id":"h/bad","title":"[{"a":"x"},{"a":"y"}]","archived":false}"#,
        r#"{"id":"h/bad","x":[{"id":1},{"id":2},{"id":3}],"n":<err>}"#,
        r#"{"id":"h/bad","n":"}"#,
        r"{}",
    ] {
        for place in [0, 1, 50, 99] {
            let mut records: Vec<&str> = good.iter().map(String::as_str).collect();
            records.insert(place, bad);
            let body = page(&records);
            let split =
                split(body.as_bytes(), &LAYOUT).unwrap_or_else(|error| panic!("{place}: {bad}: {error}"));
            assert_eq!(texts(&split), records, "{place}: {bad}");
            assert!(split.sibling("pagination").is_some(), "{place}: {bad}");
        }
    }
}

#[test]
fn b5_two_bad_records_side_by_side_are_two() {
    let (one, other) = (r#"{"id":"h/1","title":"7" {single"}"#, r#"{"id":"h/2","n":<err "x>}"#);
    let good = r#"{"id":"h/3","title":"x"}"#;
    for records in
        [vec![one, other, good], vec![one, one, good], vec![good, one, other], vec![one, other], vec![other]]
    {
        let body = page(&records);
        assert_eq!(texts(&split(body.as_bytes(), &LAYOUT).unwrap()), records);
    }
}

#[test]
fn bytes_that_are_no_utf8_spoil_nothing() {
    let mut body = br#"{"links":[{"id":"h/a","title":""#.to_vec();
    body.extend([0xff, 0xfe, b'"', b'}']);
    body.extend_from_slice(br#",{"id":"h/b"}],"pagination":{}}"#);
    let split = split(&body, &LAYOUT).unwrap();
    assert_eq!(split.records.len(), 2);
    assert_eq!(split.records[0], b"{\"id\":\"h/a\",\"title\":\"\xff\xfe\"}");
    assert_eq!(split.records[1], br#"{"id":"h/b"}"#);
}

#[test]
fn a_page_cut_at_any_byte_is_cut_whichever_reader_meets_it() {
    let clean = page(&[r#"{"id":"h/a","title":"x"}"#, r#"{"id":"h/b"}"#]);
    let dirty = page(&[r#"{"id":"h/a","title":"7" {"}"#, "{\"id\":\"h/b\",\"t\":\"\u{1}\"}"]);
    for whole in [clean, dirty] {
        for end in 1..whole.len() {
            assert_eq!(
                split(&whole.as_bytes()[..end], &LAYOUT).map(|_| ()),
                Err(SplitError::Cut),
                "{end}: {whole}"
            );
        }
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        r#"[\\"{}\[\],: a]{0,10}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let names = prop_oneof!["[a-z]{1,6}", Just("id".to_owned()), Just("links".to_owned())];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((names, inner), 0..4)
                .prop_map(|fields| Value::from(fields.into_iter().collect::<serde_json::Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn both_readers_give_the_records_that_serde_gives(
        records in proptest::collection::vec(json(), 0..6),
        more in json(),
        pretty in any::<bool>(),
    ) {
        let value = serde_json::json!({"before": more, "links": records, "pagination": {"next": more}});
        let body = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let fast = split(body.as_bytes(), &LAYOUT).unwrap();
        let parsed: Vec<Value> = fast.records.iter().map(|raw| serde_json::from_slice(raw).unwrap()).collect();
        // Through text on both sides: a float may not survive parsing bit by bit.
        let expected: Value = serde_json::from_str(&body).unwrap();
        prop_assert_eq!(&Value::from(parsed), &expected["links"]);
        let slow = Walk::new(body.as_bytes(), &LAYOUT).run().unwrap();
        prop_assert_eq!(&slow, &fast);
    }

    #[test]
    fn nothing_that_comes_makes_it_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = split(&body, &LAYOUT);
    }

    #[test]
    fn nothing_that_looks_like_json_makes_it_panic(text in r#"\{"links":\[[\\"{}\[\],:a1\x01 ]{0,120}"#) {
        let _ = split(text.as_bytes(), &LAYOUT);
    }
}
