//! The keys of `[source]`.

use std::time::Duration;

use toml::Spanned;

use super::file;
use super::reader::Reader;
use super::{
    Auth, AuthKind, ErrorRule, HttpSource, Meaning, Next, PIPELINE, Pace, Paging, Partitions, Problem,
    RangeKind, Reanchor, SecretFrom, Source, Sweep, Until,
};
use crate::field::instant;
use crate::pointer::Pointer;

impl Reader<'_> {
    pub(super) fn source(&mut self, source: file::Source) -> Source {
        match (&source.url, &source.file) {
            (Some(_), None) => self.http(source),
            (None, Some(path)) => {
                if source.records.is_some()
                    || source.paging.is_some()
                    || source.auth.is_some()
                    || source.partitions.is_some()
                    || source.until.is_some()
                    || source.sweep.is_some()
                {
                    self.problem(
                        path,
                        "a file has no pages: `records`, `paging`, `auth`, `partitions`, `until` and `sweep` belong to a `url`",
                    );
                }
                Source::File { path: path.get_ref().clone() }
            }
            (Some(url), Some(_)) => {
                self.problem(url, "a source is a `url` or a `file`, not both");
                Source::File { path: String::new() }
            }
            (None, None) => {
                self.problems.push(Problem::of(
                    PIPELINE,
                    None,
                    "[source] names neither a `url` nor a `file`",
                ));
                Source::File { path: String::new() }
            }
        }
    }

    fn http(&mut self, source: file::Source) -> Source {
        let url = source.url.expect("the caller has looked");
        match upstream::Url::parse(url.get_ref()) {
            Ok(parsed) if matches!(parsed.scheme(), "http" | "https") && parsed.host().is_some() => {
                if !parsed.username().is_empty() || parsed.password().is_some() {
                    self.problem(&url, "a URL holds no credential; declare [source.auth]");
                }
            }
            _ => self.problem(&url, format!("\"{}\" is not a URL of http or https", url.get_ref())),
        }
        let records = match &source.records {
            Some(text) => self.pointer(text),
            None => {
                self.problem(&url, "[source] lacks `records`: the JSON pointer to a page's list, \"\" if the page is the list");
                Pointer::root()
            }
        };
        let paging = match source.paging {
            Some(paging) => self.paging(paging),
            None => {
                self.problem(&url, "[source.paging] is missing: how does a page lead to the next?");
                Paging {
                    param: String::new(),
                    from: Next::Cursor(Pointer::root()),
                    has_more: None,
                    total: None,
                    empty_text_is_end: false,
                    cursor_at_end: false,
                    stalled_is_end: false,
                    stateful: false,
                    reanchor: None,
                }
            }
        };
        for (name, value) in &source.headers {
            let is_header = upstream::HeaderName::from_bytes(name.as_bytes()).is_ok()
                && upstream::HeaderValue::from_str(value.get_ref()).is_ok();
            if !is_header {
                self.problem(value, format!("`{name}` and its value make no header"));
            } else if ["authorization", "cookie", "proxy-authorization"]
                .contains(&name.to_ascii_lowercase().as_str())
            {
                self.problem(
                    value,
                    format!("`{name}` is a credential; declare [source.auth], which keeps it out of files"),
                );
            }
        }
        let auth = source.auth.and_then(|auth| self.auth(&auth));
        let (partitions, side_by_side) = match source.partitions {
            Some(partitions) => self.partitions(&partitions),
            None => (Partitions::One, 1),
        };
        let until = source.until.and_then(|until| self.until(&until, &partitions));
        let sweep = source.sweep.and_then(|sweep| self.sweep(&sweep, &partitions));
        let errors = source.errors.iter().filter_map(|rule| self.error_rule(rule)).collect();
        Source::Http(Box::new(HttpSource {
            url: url.into_inner(),
            records,
            params: source.params.into_iter().collect(),
            headers: source.headers.into_iter().map(|(name, value)| (name, value.into_inner())).collect(),
            page_size: source.page.map(|page| (page.param, page.size)),
            paging,
            auth,
            pace: source.pace.map(|pace| Pace {
                requests: pace.requests.max(1),
                per: Duration::try_from_secs_f64(pace.per_seconds).unwrap_or(Duration::from_secs(1)),
                concurrent: pace.concurrent.unwrap_or(4).max(1),
            }),
            partitions,
            side_by_side,
            until,
            sweep,
            errors,
        }))
    }

    fn paging(&mut self, paging: Spanned<file::Paging>) -> Paging {
        let from = match (&paging.get_ref().cursor, &paging.get_ref().last) {
            (Some(text), None) => Next::Cursor(self.pointer(text)),
            (None, Some(text)) => Next::Last(self.pointer(text)),
            _ => {
                self.problem(&paging, "[source.paging] names either `cursor`, the pointer to the next cursor in a page, or `last`, the pointer to the key in a page's last record");
                Next::Cursor(Pointer::root())
            }
        };
        let declared = paging.get_ref();
        let reanchor = declared.reanchor.as_ref().map(|reanchor| {
            if matches!(from, Next::Last(_)) || declared.stalled_is_end || declared.stateful {
                self.problem(
                    reanchor,
                    "`reanchor` is for cursors that expire; `last` has none, and one that is `stateful` or `stalled_is_end` \
                     says nothing of where it stands",
                );
            }
            let declared = reanchor.get_ref();
            Reanchor { param: declared.param.clone(), key: self.pointer(&declared.last) }
        });
        if matches!(from, Next::Last(_))
            && (declared.empty_text_is_end || declared.stalled_is_end || declared.stateful)
        {
            self.problem(
                &paging,
                "`empty_text_is_end`, `stalled_is_end` and `stateful` speak of cursors, and `last` has none",
            );
        }
        Paging {
            param: declared.param.clone(),
            from,
            has_more: declared.has_more.as_ref().map(|text| self.pointer(text)),
            total: declared.total.as_ref().map(|text| self.pointer(text)),
            empty_text_is_end: declared.empty_text_is_end,
            cursor_at_end: declared.cursor_at_end,
            stalled_is_end: declared.stalled_is_end,
            stateful: declared.stateful,
            reanchor,
        }
    }

    fn auth(&mut self, auth: &Spanned<file::Auth>) -> Option<Auth> {
        let declared = auth.get_ref();
        let kind = match (declared.kind.get_ref().as_str(), &declared.header, &declared.user) {
            ("bearer", None, None) => AuthKind::Bearer,
            ("header", Some(name), None) if upstream::HeaderName::from_bytes(name.as_bytes()).is_ok() => {
                AuthKind::Header(name.clone())
            }
            ("basic", None, Some(user)) if !user.contains(':') => AuthKind::Basic(user.clone()),
            _ => {
                self.problem(&declared.kind, "[source.auth] is `kind = \"bearer\"`, `kind = \"header\"` with `header`, or `kind = \"basic\"` with `user`");
                return None;
            }
        };
        let secret = match (&declared.env, &declared.file, &declared.command) {
            (Some(name), None, None) => {
                if self.text.contains(&format!("${{{name}}}")) {
                    self.problem(
                        auth,
                        format!("${{{name}}} is a credential, and values of ${{…}} are stored with the job"),
                    );
                }
                SecretFrom::Env(name.clone())
            }
            (None, Some(path), None) => SecretFrom::File(path.clone()),
            (None, None, Some(command)) if !command.is_empty() => SecretFrom::Command(command.clone()),
            _ => {
                self.problem(
                    auth,
                    "[source.auth] says where the secret comes from: one of `env`, `file` and `command`",
                );
                return None;
            }
        };
        Some(Auth { kind, secret })
    }

    fn partitions(&mut self, partitions: &Spanned<file::Partitions>) -> (Partitions, usize) {
        let declared = partitions.get_ref();
        let found = match declared {
            file::Partitions {
                param: Some(param),
                values: Some(values),
                from_param: None,
                to_param: None,
                from: None,
                to: None,
                kind: None,
                parts: None,
                ..
            } if !values.is_empty() => {
                let mut distinct = values.clone();
                distinct.sort();
                distinct.dedup();
                if distinct.len() < values.len() {
                    self.problem(partitions, "`values` names one value twice: its records would come twice");
                }
                Partitions::Values { param: param.clone(), values: values.clone() }
            }
            file::Partitions {
                param: None,
                values: None,
                from_param: Some(from_param),
                to_param: Some(to_param),
                from: Some(from),
                to: Some(to),
                kind: Some(kind),
                parts: Some(parts),
                ..
            } => match ranges(kind, from, to, *parts) {
                Ok(ranges) => Partitions::Ranges {
                    from_param: from_param.clone(),
                    to_param: to_param.clone(),
                    kind: if kind == "id" { RangeKind::Id } else { RangeKind::Time },
                    ranges,
                },
                Err(why) => {
                    self.problem(partitions, why);
                    Partitions::One
                }
            },
            _ => {
                self.problem(partitions, "[source.partitions] is `param` with `values`, or `from_param`, `to_param`, `kind` (\"time\" or \"id\"), `from`, `to` and `parts`");
                Partitions::One
            }
        };
        (found, declared.side_by_side.unwrap_or(4).clamp(1, 64))
    }

    fn until(&mut self, until: &Spanned<file::Until>, partitions: &Partitions) -> Option<Until> {
        let declared = until.get_ref();
        let lag = self.duration(&declared.lag, declared.lag.get_ref())?;
        self.bound_param(until, declared.param.as_ref(), partitions)?;
        Some(Until { param: declared.param.clone(), lag })
    }

    fn sweep(&mut self, sweep: &Spanned<file::Sweep>, partitions: &Partitions) -> Option<Sweep> {
        let declared = sweep.get_ref();
        let of_ids = matches!(partitions, Partitions::Ranges { kind: RangeKind::Id, .. });
        match (declared.back.get_ref(), &declared.param) {
            (toml::Value::Integer(back), None) if of_ids && *back > 0 => Some(Sweep::Ids { back: *back }),
            (toml::Value::String(text), param) if !of_ids || param.is_some() => {
                let back = self.duration(&declared.back, text)?;
                self.bound_param(sweep, param.as_ref(), partitions)?;
                if of_ids {
                    self.problem(sweep, "ranges of ids are swept by ids: `back` is a number of them");
                    return None;
                }
                Some(Sweep::Time { param: param.clone(), back })
            }
            _ => {
                self.problem(
                    &declared.back,
                    "`back` is a time such as \"1h\", or a number of ids where partitions are ranges of ids",
                );
                None
            }
        }
    }

    /// Ranges of times have parameters for their bounds; other partitions need one.
    fn bound_param<T>(
        &mut self,
        at: &Spanned<T>,
        param: Option<&String>,
        partitions: &Partitions,
    ) -> Option<()> {
        let has_bounds = matches!(partitions, Partitions::Ranges { kind: RangeKind::Time, .. });
        match (has_bounds, param) {
            (true, None) | (false, Some(_)) => Some(()),
            (true, Some(_)) => {
                self.problem(
                    at,
                    "the ranges of [source.partitions] have parameters for their bounds: no `param` here",
                );
                None
            }
            (false, None) => {
                self.problem(at, "`param` is missing: the parameter that takes the time");
                None
            }
        }
    }

    fn duration<T>(&mut self, at: &Spanned<T>, text: &str) -> Option<Duration> {
        let found = duration(text);
        if found.is_none() {
            self.problem(at, format!("\"{text}\" is no time such as \"90s\", \"10m\", \"1h\" or \"2d\""));
        }
        found
    }

    fn error_rule(&mut self, rule: &Spanned<file::ErrorRule>) -> Option<ErrorRule> {
        let declared = rule.get_ref();
        let wait = declared.wait_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let means = match declared.means.get_ref().as_str() {
            "cursor_expired" => Meaning::CursorExpired,
            "rate_limited" => Meaning::RateLimited(wait),
            "retry" => Meaning::Retry,
            "unauthorized" => Meaning::Unauthorized,
            "fatal" => Meaning::Fatal,
            other => {
                self.problem(&declared.means, format!("\"{other}\" means nothing here; there are cursor_expired, rate_limited, retry, unauthorized and fatal"));
                return None;
            }
        };
        let body = match (&declared.pointer, &declared.values) {
            (Some(pointer), Some(values)) if !values.is_empty() => {
                Some((self.pointer(pointer), values.clone()))
            }
            (None, None) => None,
            _ => {
                self.problem(
                    rule,
                    "a rule about the body has a `pointer` and the `values` that it stands for",
                );
                return None;
            }
        };
        if declared.status.is_none() && body.is_none() {
            self.problem(
                rule,
                "a rule says which answers it is about: a `status`, or a `pointer` and `values`, or both",
            );
            return None;
        }
        Some(ErrorRule { status: declared.status, body, means })
    }
}

/// A time such as `90s`, `10m`, `1h` or `2d`, of at most ten years.
fn duration(text: &str) -> Option<Duration> {
    const MAX_SECONDS: u64 = 10 * 366 * 86_400;
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let number = &text[..text.len() - unit.len_utf8()];
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.then(|| number.parse().ok()).flatten()?;
    number.checked_mul(seconds).filter(|seconds| (1..=MAX_SECONDS).contains(seconds)).map(Duration::from_secs)
}

/// Half-open ranges of about the same width.
pub(super) fn ranges(kind: &str, from: &str, to: &str, parts: u32) -> Result<Vec<(String, String)>, String> {
    if !(1..=10_000).contains(&parts) {
        return Err("`parts` lies between 1 and 10,000".to_owned());
    }
    let bad = |text: &str| format!("\"{text}\" is not a value of the kind \"{kind}\"");
    let read = |text: &str| match kind {
        "id" => text.parse::<i64>().map_err(|_| bad(text)),
        "time" => {
            instant::parse(text, instant::Local::Unknown).map_err(|error| format!("{}: {error}", bad(text)))
        }
        _ => Err(format!("`kind` is \"time\" or \"id\", not \"{kind}\"")),
    };
    let (first, end) = (i128::from(read(from)?), i128::from(read(to)?));
    if first >= end {
        return Err(format!("the range from \"{from}\" to \"{to}\" is empty"));
    }
    let parts = i128::from(parts).min(end - first);
    let at = |index: i128| -> String {
        let value = i64::try_from(first + (end - first) * index / parts).unwrap_or(i64::MAX);
        if kind == "id" { value.to_string() } else { rfc3339(value) }
    };
    Ok((0..parts).map(|index| (at(index), at(index + 1))).collect())
}

fn rfc3339(micros: i64) -> String {
    db::Timestamp::from_micros(micros).to_string()
}
