use super::*;

/// The texts and keys of a document, in order.
fn texts(document: &str) -> Result<Vec<&str>, Cut> {
    let mut scanner = Scanner::new(document.as_bytes());
    let mut texts = Vec::new();
    while let Some(token) = scanner.next()? {
        if let Token::Text(inside) | Token::Key(inside) = token {
            texts.push(&document[inside]);
        }
    }
    Ok(texts)
}

#[test]
fn a_text_ends_where_json_goes_on() {
    for title in [
        "plain",
        "",
        r#"The "best" offers, "all" of them: {so to say}, "archived" or not"#,
        r#"A 7" single, {or} more"#,
        r#"""#,
        r#""quoted""#,
        r#"ends with a quote""#,
        r#"properly \"escaped\", and "not""#,
        r#"looks like a field", "bye": fine"#,
        r#"brackets "} and "] and "}]} alone"#,
        "raw \u{1} control\tsigns,\nand\r\na line",
        r#"[{\"a\":\"b\"},{\"a\":\"c\"}] "raw""#,
        r"C:\",
        r"C:\dir\",
    ] {
        let document = format!(
            r#"[{{"title":"{title}","archived":false,"tags":["a","b"],"last":"{title}"}},{{"x":1}}]"#
        );
        let expected = ["title", title, "archived", "tags", "a", "b", "last", title, "x"];
        assert_eq!(texts(&document).unwrap(), expected, "{document}");
    }
}

#[test]
fn rubbish_for_a_value_ends_at_the_next_field() {
    let document = r#"[{"id":"a","n":<err a, b>,"title":"x","m":fal,"tags":[,],"z"},{"id":"b"}]"#;
    assert_eq!(texts(document).unwrap(), ["id", "a", "n", "title", "x", "m", "tags", "z", "id", "b"]);
}

#[test]
fn rubbish_for_a_value_does_not_swallow_the_next_record() {
    let document = r#"[{"id":"a","n":<err>},{"id":"b","n":1}]"#;
    assert_eq!(texts(document).unwrap(), ["id", "a", "n", "id", "b", "n"]);
}

#[test]
fn a_document_cut_at_any_byte_is_cut() {
    let whole = r#"{"links":[{"title":"a \"b\" {c "raw"","n":1},{"title":"x"}],"next":""}"#;
    for end in 1..whole.len() {
        assert_eq!(texts(&whole[..end]), Err(Cut), "cut at {end}");
    }
}
