//! The vendor's record as it is kept with an imported link: compact, and without secrets.

use crate::tolerant::skip_blanks;

/// Stands where a secret stood.
const REDACTED: &str = "\"[redacted]\"";

/// Words in a field's name that make its value a secret or somebody's address.
const SECRET_NAMES: [&str; 9] =
    ["token", "secret", "password", "passwd", "apikey", "api_key", "authorization", "credential", "email"];

/// A record without blanks between its parts and with the values of secret fields taken out, at any depth.
///
/// Everything else stays as received: order, numbers, escapes, unknown fields. Fields named in `people` say who
/// did something; their value is taken out where it is an e-mail address. Switches such as `hasPassword` stay.
/// The JSON must be valid.
pub(crate) fn provenance(json: &str, people: &[&str]) -> String {
    let mut kept = String::with_capacity(json.len());
    let mut at = 0;
    while at < json.len() {
        at = skip_blanks(json.as_bytes(), at);
        let end = token_end(json, at);
        let token = &json[at..end];
        kept.push_str(token);
        at = end;
        let colon = skip_blanks(json.as_bytes(), at);
        if !token.starts_with('"') || json.as_bytes().get(colon) != Some(&b':') {
            continue;
        }
        kept.push(':');
        at = skip_blanks(json.as_bytes(), colon + 1);
        let end = value_end(json, at);
        if is_to_be_hidden(token, &json[at..end], people) {
            kept.push_str(REDACTED);
            at = end;
        }
    }
    kept
}

fn is_to_be_hidden(quoted_name: &str, value: &str, people: &[&str]) -> bool {
    if matches!(value, "true" | "false" | "null" | "\"\"" | "[]" | "{}") {
        return false;
    }
    // A name with escapes is read before it is judged.
    let name = serde_json::from_str::<String>(quoted_name).unwrap_or_default().to_lowercase();
    SECRET_NAMES.iter().any(|word| name.contains(word))
        || (people.contains(&name.as_str()) && value.contains('@'))
}

/// The end of the string, word or single bracket that begins at `at`.
fn token_end(json: &str, at: usize) -> usize {
    let bytes = json.as_bytes();
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, at),
        Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => at + 1,
        Some(_) => {
            let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
            bytes[at..].iter().position(is_end).map_or(bytes.len(), |length| at + length)
        }
        None => at,
    }
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of the value that begins at `at`, brackets and all.
fn value_end(json: &str, mut at: usize) -> usize {
    let mut depth = 0_usize;
    loop {
        at = skip_blanks(json.as_bytes(), at);
        match json.as_bytes().get(at) {
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') => depth = depth.saturating_sub(1),
            None => return json.len(),
            Some(_) => {}
        }
        at = token_end(json, at);
        if depth == 0 {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_secret_stays_as_received() {
        let json = r#"{ "b" : 1.50, "a":[ 9007199254740993 , "x\u00e9 : \" y" ],"token_kind":null,"hasPassword":true, "e": {} }"#;
        let kept = r#"{"b":1.50,"a":[9007199254740993,"x\u00e9 : \" y"],"token_kind":null,"hasPassword":true,"e":{}}"#;
        assert_eq!(provenance(json, &["created_by"]), kept);
    }

    #[test]
    fn secrets_are_taken_out_at_any_depth() {
        let json = r#"{"id":"h/a","password":"s3cr3t","x":[{"Access_Token" : "s3cr3t"},{"api_key":["s3cr3t",{"a":"s3cr3t"}]}],
            "pass\u0077ord2":"s3cr3t","userEmail":"s3cr3t@example.com","client_secret":53, "created_by":"s3cr3t@example.com","last":"kept"}"#;
        let kept = provenance(json, &["created_by"]);
        assert!(!kept.contains("s3cr3t") && !kept.contains("53"), "{kept}");
        let value: serde_json::Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(value["last"], "kept");
        assert_eq!(value["x"][1]["api_key"], "[redacted]");
        assert_eq!(
            provenance(r#"{"created_by":"chauncey"}"#, &["created_by"]),
            r#"{"created_by":"chauncey"}"#
        );
    }
}
