//! The partitions of an API: which there are, and which parameters choose each.
//!
//! What depends on the hour of the job's beginning, the time before which records are taken and the stretch that is looked
//! at once more, stands in the partition's key, so that whoever fetches on asks the same.

use engine::PartitionSpec;

use crate::declaration::{HttpSource, Partitions, RangeKind, Sweep};
use crate::field::instant::{self, Local};

/// Begins the key of a partition that looks once more.
const AGAIN: &str = "sweep ";
const FROM: &str = " from ";
const UNTIL: &str = " until ";

const MICROS: i64 = 1_000_000;

/// The partitions of a job that begins `now`, in seconds since 1970.
pub(super) fn specs(declared: &HttpSource, now: i64) -> Result<Vec<PartitionSpec>, String> {
    let until = declared.until.as_ref().map(|until| earlier(now, until.lag));
    let upper = until.map(|until| format!("{UNTIL}{}", shown(until))).unwrap_or_default();
    let spec = |key: String, closing| PartitionSpec { key, expected: None, left_out: None, closing };
    let bases: Vec<&str> = match &declared.partitions {
        Partitions::One => vec!["all"],
        Partitions::Values { values, .. } => values.iter().map(String::as_str).collect(),
        Partitions::Ranges { kind, ranges, .. } => return of_ranges(declared, *kind, ranges, now),
    };
    let once = bases.iter().map(|base| spec(format!("{base}{upper}"), false));
    let again = bases.iter().filter_map(|base| match &declared.sweep {
        Some(Sweep::Time { back, .. }) => {
            let from = shown(earlier(until.unwrap_or(now), *back));
            Some(spec(format!("{AGAIN}{base}{FROM}{from}{upper}"), true))
        }
        _ => None,
    });
    Ok(once.chain(again).collect())
}

fn of_ranges(
    declared: &HttpSource,
    kind: RangeKind,
    ranges: &[(String, String)],
    now: i64,
) -> Result<Vec<PartitionSpec>, String> {
    let limit = declared.until.as_ref().map(|until| earlier(now, until.lag));
    let (clip, upper) = match (kind, limit) {
        (RangeKind::Time, Some(limit)) => (Some(limit * MICROS), String::new()),
        (RangeKind::Id, Some(limit)) => (None, format!("{UNTIL}{}", shown(limit))),
        (_, None) => (None, String::new()),
    };
    let spec = |from: &str, to: &str, closing: bool| PartitionSpec {
        key: format!("{}{from}..{to}{upper}", if closing { AGAIN } else { "" }),
        expected: None,
        left_out: None,
        closing,
    };
    let mut specs = Vec::new();
    let (mut first, mut end) = (None, 0);
    for (from, to) in ranges {
        let (low, mut high) = (read(kind, from)?, read(kind, to)?);
        let mut to = to.clone();
        if let Some(clip) = clip.filter(|clip| *clip < high) {
            (high, to) = (clip, shown(clip / MICROS));
        }
        if low < high {
            specs.push(spec(from, &to, false));
            first.get_or_insert(low);
            end = high;
        }
    }
    let first = first.ok_or_else(|| {
        format!(
            "nothing of the partitions lies before {}, and later records are not taken yet",
            shown(limit.unwrap_or(now))
        )
    })?;
    let window = match &declared.sweep {
        None => None,
        Some(Sweep::Ids { back }) => {
            Some((end.saturating_sub(*back).max(first).to_string(), end.to_string()))
        }
        Some(Sweep::Time { back, .. }) => {
            let from = earlier(end.min(now * MICROS) / MICROS, *back).max(first / MICROS);
            Some((shown(from), shown_micros(end)))
        }
    };
    specs.extend(window.map(|(from, to)| spec(&from, &to, true)));
    Ok(specs)
}

/// The parameters that choose the partition of this key; none if the declaration has no such partition.
pub(super) fn parameters(declared: &HttpSource, key: &str) -> Option<Vec<(String, String)>> {
    let (key, again) = match key.strip_prefix(AGAIN) {
        Some(rest) if declared.sweep.is_some() => (rest, true),
        _ => (key, false),
    };
    match &declared.partitions {
        Partitions::One => bounds(declared, key.strip_prefix("all")?, again),
        Partitions::Values { param, values } => values.iter().find_map(|value| {
            let mut chosen = vec![(param.clone(), value.clone())];
            chosen.extend(bounds(declared, key.strip_prefix(value.as_str())?, again)?);
            Some(chosen)
        }),
        Partitions::Ranges { from_param, to_param, kind, .. } => {
            let (range, upper) = key.split_at(key.find(UNTIL).unwrap_or(key.len()));
            let (from, to) = range.split_once("..")?;
            let is_range = read(*kind, from).ok()? <= read(*kind, to).ok()?;
            let mut chosen = vec![(from_param.clone(), from.to_owned()), (to_param.clone(), to.to_owned())];
            chosen.extend(bounds(declared, upper, false)?);
            is_range.then_some(chosen)
        }
    }
}

/// The parameters of what stands behind the name of a partition in its key.
fn bounds(declared: &HttpSource, rest: &str, again: bool) -> Option<Vec<(String, String)>> {
    let mut chosen = Vec::new();
    let mut rest = rest;
    if again {
        let Some(Sweep::Time { param: Some(param), .. }) = &declared.sweep else { return None };
        let from = rest.strip_prefix(FROM)?;
        let (from, behind) = from.split_at(from.find(UNTIL).unwrap_or(from.len()));
        chosen.push((param.clone(), from.to_owned()));
        rest = behind;
    }
    if rest.is_empty() {
        return Some(chosen);
    }
    let param = declared.until.as_ref()?.param.as_ref()?;
    chosen.push((param.clone(), rest.strip_prefix(UNTIL)?.to_owned()));
    Some(chosen)
}

fn read(kind: RangeKind, text: &str) -> Result<i64, String> {
    match kind {
        RangeKind::Id => text.parse().map_err(|_| format!("'{text}' is no id of a range")),
        RangeKind::Time => {
            instant::parse(text, Local::Unknown).map_err(|error| format!("'{text}' bounds no range: {error}"))
        }
    }
}

fn earlier(seconds: i64, by: std::time::Duration) -> i64 {
    seconds.saturating_sub(i64::try_from(by.as_secs()).unwrap_or(i64::MAX))
}

fn shown(seconds: i64) -> String {
    shown_micros(seconds.saturating_mul(MICROS))
}

fn shown_micros(micros: i64) -> String {
    db::Timestamp::from_micros(micros).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::{Declaration, Folder, Source, Variables};

    /// 2026-01-02T00:00:00Z.
    const NOW: i64 = 1_767_312_000;

    fn declared(more: &str) -> HttpSource {
        let pipeline = format!(
            "name = \"x\"\n[source]\nurl = \"https://example.com/x\"\nrecords = \"\"\n[source.paging]\nlast = \"/id\"\n\
             param = \"after\"\n{more}\n[record]\nid = \"id\"\nreference = \"{{id}}\"\n[fields.id]\npointer = \"/id\"\n\
             type = \"text\"\n[target]\ntable = \"t\"\nkey = [\"r\"]\n"
        );
        let folder = Folder::of([
            ("pipeline.toml", pipeline.as_str()),
            ("map.sql", "SELECT 1"),
            ("proof.sql", "SELECT 1"),
        ]);
        let declaration = Declaration::read(&folder, &Variables::default());
        let Source::Http(http) = declaration.map_err(|problems| format!("{problems:#?}")).unwrap().source
        else {
            panic!("it has a URL")
        };
        *http
    }

    /// Key, whether it comes last, and the parameters that it stands for.
    fn asked(more: &str) -> Vec<(String, bool, String)> {
        let declared = declared(more);
        let told = |spec: PartitionSpec| {
            let parameters = parameters(&declared, &spec.key).expect("a key of its own");
            let parameters: Vec<String> =
                parameters.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            (spec.key, spec.closing, parameters.join("&"))
        };
        specs(&declared, NOW).unwrap().into_iter().map(told).collect()
    }

    const VALUES: &str = "[source.partitions]\nparam = \"shard\"\nvalues = [\"a\", \"a b\"]\n";
    const TIMES: &str = "[source.partitions]\nfrom_param = \"from\"\nto_param = \"to\"\nkind = \"time\"\n\
        from = \"2026-01-01T00:00:00Z\"\nto = \"2026-01-03T00:00:00Z\"\nparts = 4\n";
    const IDS: &str = "[source.partitions]\nfrom_param = \"low\"\nto_param = \"high\"\nkind = \"id\"\nfrom = \"0\"\n\
        to = \"100\"\nparts = 2\n";
    const UNTIL_10M: &str = "[source.until]\nparam = \"before\"\nlag = \"10m\"\n";
    const SWEEP_1H: &str = "[source.sweep]\nparam = \"since\"\nback = \"1h\"\n";

    fn check(more: &[&str], expected: &[(&str, bool, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(key, last, asks)| ((*key).to_owned(), *last, (*asks).to_owned())).collect();
        assert_eq!(asked(&more.concat()), expected, "{more:?}");
    }

    #[test]
    fn b27_a_source_is_asked_up_to_its_lag_and_its_last_stretch_once_more() {
        check(&[], &[("all", false, "")]);
        check(&[UNTIL_10M], &[("all until 2026-01-01T23:50:00Z", false, "before=2026-01-01T23:50:00Z")]);
        check(
            &[SWEEP_1H],
            &[
                ("all", false, ""),
                ("sweep all from 2026-01-01T23:00:00Z", true, "since=2026-01-01T23:00:00Z"),
            ],
        );
        check(
            &[VALUES, UNTIL_10M, SWEEP_1H],
            &[
                ("a until 2026-01-01T23:50:00Z", false, "shard=a&before=2026-01-01T23:50:00Z"),
                ("a b until 2026-01-01T23:50:00Z", false, "shard=a b&before=2026-01-01T23:50:00Z"),
                (
                    "sweep a from 2026-01-01T22:50:00Z until 2026-01-01T23:50:00Z",
                    true,
                    "shard=a&since=2026-01-01T22:50:00Z&before=2026-01-01T23:50:00Z",
                ),
                (
                    "sweep a b from 2026-01-01T22:50:00Z until 2026-01-01T23:50:00Z",
                    true,
                    "shard=a b&since=2026-01-01T22:50:00Z&before=2026-01-01T23:50:00Z",
                ),
            ],
        );
    }

    #[test]
    fn b27_ranges_end_at_the_lag_and_their_own_end_is_swept() {
        check(
            &[TIMES, "[source.until]\nlag = \"13h\"\n[source.sweep]\nback = \"2h\"\n"],
            &[
                (
                    "2026-01-01T00:00:00Z..2026-01-01T11:00:00Z",
                    false,
                    "from=2026-01-01T00:00:00Z&to=2026-01-01T11:00:00Z",
                ),
                (
                    "sweep 2026-01-01T09:00:00Z..2026-01-01T11:00:00Z",
                    true,
                    "from=2026-01-01T09:00:00Z&to=2026-01-01T11:00:00Z",
                ),
            ],
        );
        let swept = asked(&[TIMES, "[source.sweep]\nback = \"2h\"\n"].concat());
        assert_eq!(swept.len(), 5);
        assert_eq!(
            swept[4].0, "sweep 2026-01-01T22:00:00Z..2026-01-03T00:00:00Z",
            "what is still to come as well"
        );
        check(
            &[IDS, UNTIL_10M, "[source.sweep]\nback = 30\n"],
            &[
                ("0..50 until 2026-01-01T23:50:00Z", false, "low=0&high=50&before=2026-01-01T23:50:00Z"),
                ("50..100 until 2026-01-01T23:50:00Z", false, "low=50&high=100&before=2026-01-01T23:50:00Z"),
                (
                    "sweep 70..100 until 2026-01-01T23:50:00Z",
                    true,
                    "low=70&high=100&before=2026-01-01T23:50:00Z",
                ),
            ],
        );
        check(
            &[IDS, "[source.sweep]\nback = 1000\n"],
            &[
                ("0..50", false, "low=0&high=50"),
                ("50..100", false, "low=50&high=100"),
                ("sweep 0..100", true, "low=0&high=100"),
            ],
        );
        let none = specs(&declared(&[TIMES, "[source.until]\nlag = \"30d\"\n"].concat()), NOW);
        assert!(none.unwrap_err().contains("before 2025-12-03T00:00:00Z"));
    }

    #[test]
    fn a_key_that_the_declaration_does_not_know_is_no_partition() {
        for (more, key) in [
            ("", "everything"),
            ("", "all until 2026-01-01T23:50:00Z"),
            ("", "sweep all from 2026-01-01T23:50:00Z"),
            (UNTIL_10M, "all from 2026-01-01T23:50:00Z"),
            (SWEEP_1H, "sweep all"),
            (VALUES, "c"),
            (VALUES, "abc"),
            (IDS, "0"),
            (IDS, "a..b"),
            (TIMES, "1..2"),
        ] {
            assert_eq!(parameters(&declared(more), key), None, "{more} {key}");
        }
        // A bound that was not declared when the job began is not asked for.
        assert_eq!(parameters(&declared(UNTIL_10M), "all"), Some(Vec::new()));
    }
}
