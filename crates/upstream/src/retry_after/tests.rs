use super::*;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

const SERVER_DATE: &str = "Fri, 07 Sep 2029 20:59:00 GMT";

type Lines<'a> = Vec<(&'a str, &'a str)>;

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    map
}

/// The local clock is a day off on purpose: only the server's `Date` may count.
fn asked_at_server_date(lines: &[(&str, &str)], body: &str) -> Option<Duration> {
    let mut all = vec![("date", SERVER_DATE)];
    all.extend_from_slice(lines);
    let wrong = httpdate::parse_http_date(SERVER_DATE).unwrap() + Duration::from_secs(86_400);
    asked(&headers(&all), body.as_bytes(), wrong)
}

#[test]
fn retry_after_is_read_in_every_form_that_servers_send() {
    let epoch = httpdate::parse_http_date(SERVER_DATE).unwrap().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let moment = |ahead: i64| (i64::try_from(epoch).unwrap() + ahead).to_string();
    let cases: Vec<(String, Option<u64>)> = vec![
        ("7".into(), Some(7_000)),
        (" 7 ".into(), Some(7_000)),
        ("0".into(), None),
        ("-5".into(), None),
        ("-0.5".into(), None),
        ("0.0".into(), None),
        ("0.493".into(), Some(493)),
        ("2.0".into(), Some(2_000)),
        ("0.0001".into(), Some(1)),
        ("1.0000000001".into(), Some(1_001)),
        ("3600".into(), Some(3_600_000)),
        ("2678400".into(), Some(2_678_400_000)),
        ("3456000".into(), None),
        ("Fri, 07 Dec 2029 20:59:00 GMT".into(), None),
        // The three forms of a date in RFC 9110 §5.6.7.
        ("Fri, 07 Sep 2029 21:00:00 GMT".into(), Some(60_000)),
        ("Friday, 07-Sep-29 21:00:00 GMT".into(), Some(60_000)),
        ("Fri Sep  7 21:00:00 2029".into(), Some(60_000)),
        ("Fri, 07 Sep 2029 20:00:00 GMT".into(), None),
        (moment(30), Some(30_000)),
        (moment(-30), None),
        (format!("{}000", moment(30)), Some(30_000)),
        (format!("{}250", moment(30)), Some(30_250)),
        (format!("{}000", moment(-30)), None),
        // Absurd values ask for nothing and break nothing (nab#596).
        ("99999999999999999999".into(), None),
        ("999999999999999999999999999999".into(), None),
        ("9999999999999999999999999999999999999999999".into(), None),
        ("999999999".into(), None),
        ("Fri, 07 Sep 99999 21:00:00 GMT".into(), None),
        ("Fri, 31 Dec 9999 23:59:59 GMT".into(), None),
        ("soon".into(), None),
        ("1e3".into(), None),
        ("NaN".into(), None),
        ("inf".into(), None),
        ("+7".into(), None),
        ("7 seconds".into(), None),
        ("7.".into(), None),
        (".5".into(), None),
        (String::new(), None),
    ];
    for (value, expected) in cases {
        let got = asked_at_server_date(&[("retry-after", &value)], "");
        assert_eq!(got, expected.map(Duration::from_millis), "Retry-After: {value:?}");
    }
}

#[test]
fn other_places_are_asked_when_the_header_is_silent() {
    let epoch = httpdate::parse_http_date(SERVER_DATE).unwrap().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (soon, far, passed) = ((epoch + 9).to_string(), (epoch + 900).to_string(), (epoch - 9).to_string());
    let soon_millis = format!("{soon}000");
    let cases: Vec<(Lines<'_>, &str, Option<u64>)> = vec![
        (vec![("retry-after", "soon"), ("retry-after", "4")], "", Some(4_000)),
        (vec![("retry-after", "3"), ("retry-after", "4")], "", Some(3_000)),
        (vec![("retry-after-ms", "1500")], "", Some(1_500)),
        (vec![("retry-after", "2"), ("retry-after-ms", "1500")], "", Some(2_000)),
        (vec![], r#"{"retry_after_ms":120,"retry_after":1}"#, Some(120)),
        (vec![], r#"{"retry_after":1.5}"#, Some(1_500)),
        (vec![], r#"{"error":{"retry_after":"8"}}"#, Some(8_000)),
        (vec![], r#"{"retry_after":99999999999999999999}"#, None),
        (vec![], r#"{"retry_after":-1}"#, None),
        (vec![], r#"{"retry_after":null}"#, None),
        (vec![], "<html>retry_after: 8</html>", None),
        (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &soon)], "", Some(9_000)),
        (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &soon_millis)], "", Some(9_000)),
        (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &far)], "", Some(60_000)),
        (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &passed)], "", None),
        (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "12")], "", Some(12_000)),
        (vec![("ratelimit-reset", "12")], "", Some(12_000)),
        (vec![("x-ratelimit-remaining", "3"), ("x-ratelimit-reset", "12")], "", None),
    ];
    for (lines, body, expected) in cases {
        let got = asked_at_server_date(&lines, body);
        assert_eq!(got, expected.map(Duration::from_millis), "{lines:?} {body}");
    }
}

#[test]
fn without_a_server_date_the_local_clock_decides() {
    let local = httpdate::parse_http_date(SERVER_DATE).unwrap();
    for lines in [vec![], vec![("date", "yesterday")]] {
        let mut lines = lines;
        lines.push(("retry-after", "Fri, 07 Sep 2029 21:00:00 GMT"));
        assert_eq!(asked(&headers(&lines), b"", local), Some(Duration::from_secs(60)), "{lines:?}");
    }
}

proptest! {
    #[test]
    fn no_text_can_break_the_reader_or_ask_for_more_than_a_month(text in "\\PC{0,40}|-?[0-9]{1,40}(\\.[0-9]{0,20})?") {
        if let Some(wait) = parse(&text, UNIX_EPOCH + Duration::from_secs(1_800_000_000)) {
            prop_assert!(wait <= LONGEST_SENSIBLE);
        }
    }
}
