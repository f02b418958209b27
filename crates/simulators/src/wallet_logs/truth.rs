//! What is true of an export, told without the API.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{
    Amount, Log, Logs, Verdict,
    listing::{Extra, ExtraKind},
    oddity::Oddity,
    wire,
};

/// One record as it is served, in the order of the list, and what a right migration does with it.
///
/// What becomes of records while somebody reads (`late`, `edit`, `delete`, `move-…`) is not in it: these rows are
/// the ones that a walk meets first, and a late one stands where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its values. Of a record that fails, those that could not be read are the ones it would have without its fault.
    pub log: Log,
    /// Its narration; nothing if it is absent or null, or spoiled on purpose.
    pub narration: Option<String>,
    /// Its metadata as JSON text.
    pub metadata: String,
    /// The name of what is odd about it.
    pub fault: Option<String>,
    /// What a right migration does with it.
    pub verdict: Verdict,
}

impl Logs {
    /// Every record that is served, in the order of the list.
    pub fn truth(&self) -> impl Iterator<Item = Row> + '_ {
        (0..self.count()).flat_map(|index| self.rows(index))
    }

    /// A log and what stands behind it.
    pub(super) fn rows(&self, index: u64) -> impl Iterator<Item = Row> + '_ {
        self.told(index).map(|told| self.row(told))
    }

    fn row(&self, told: Told<'_>) -> Row {
        let Told { log, fault, verdict, to_itself } = told;
        let mut metadata = Vec::with_capacity(128);
        wire::metadata(&mut metadata, &log, to_itself);
        let metadata = String::from_utf8(metadata).expect("JSON made of letters and digits");
        let spoiled = matches!(self.oddity(log.index), Some(Oddity::Text(_)));
        let narration = (!spoiled).then(|| wire::narration_text(&log, false));
        Row { log, narration, metadata, fault: fault.map(str::to_owned), verdict }
    }

    /// The truth in numbers.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        let mut sums: HashMap<(&str, &str), Sum> = HashMap::new();
        let mut bad: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
        let mut flagged: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut conflicting = 0;
        for told in (0..self.count()).flat_map(|index| self.told(index)) {
            let Told { log, fault, verdict, .. } = told;
            summary.count += 1;
            let fault = || fault.unwrap_or_default().to_owned();
            match verdict {
                Verdict::Repeats => summary.repeated += 1,
                Verdict::Fails(reason) => {
                    summary.bad += 1;
                    conflicting += u64::from(reason == CONFLICT && told.fault == Some(CONFLICT_COPY));
                    bad.entry((fault(), reason)).or_default().push(log.id.to_string());
                }
                Verdict::Lands | Verdict::Flagged => {
                    summary.good += 1;
                    let sum = sums.entry((log.currency, log.kind.name())).or_default();
                    sum.records += 1;
                    sum.amount = sum.amount + log.amount;
                    if verdict == Verdict::Flagged {
                        flagged.entry(fault()).or_default().push(log.id.to_string());
                    }
                }
            }
        }
        summary.distinct_ids = summary.count - summary.repeated - conflicting;
        summary.sums = sums.into_iter().map(|((currency, kind), sum)| sum.told(currency, kind)).collect();
        summary.sums.sort_by_key(|sum| (sum.currency, sum.kind));
        summary.bad_ids =
            bad.into_iter().map(|((fault, reason), ids)| BadIds { fault, reason, ids }).collect();
        summary.flagged_ids = flagged.into_iter().map(|(fault, ids)| FlaggedIds { fault, ids }).collect();
        summary
    }

    fn told(&self, index: u64) -> impl Iterator<Item = Told<'_>> {
        let log = std::iter::once_with(move || self.told_log(index));
        log.chain(self.listing().extras_behind(index).map(|(place, extra)| {
            let (fault, verdict) = told_extra(extra);
            let to_itself = extra.kind == ExtraKind::ToItself;
            Told { log: self.extra(*place, *extra), fault: Some(fault), verdict, to_itself }
        }))
    }

    fn told_log(&self, index: u64) -> Told<'_> {
        let (fault, verdict) = match (self.oddity(index), self.contested(index)) {
            (Some(oddity), _) => (self.oddity_name(index), oddity.verdict()),
            (None, Some(true)) => (Some("conflict"), Verdict::Fails(CONFLICT)),
            (None, Some(false)) => (Some("conflict"), Verdict::Flagged),
            (None, None) => (None, Verdict::Lands),
        };
        Told { log: self.log(index), fault, verdict, to_itself: false }
    }
}

const CONFLICT: &str = "conflicting_duplicate";
const CONFLICT_COPY: &str = "conflict (again)";

/// A record before its texts are written.
struct Told<'a> {
    log: Log,
    fault: Option<&'a str>,
    verdict: Verdict,
    to_itself: bool,
}

fn told_extra(extra: &Extra) -> (&'static str, Verdict) {
    match extra.kind {
        ExtraKind::Copy => ("duplicate", Verdict::Repeats),
        ExtraKind::Conflict => (CONFLICT_COPY, Verdict::Fails(CONFLICT)),
        ExtraKind::Twin => ("twin", Verdict::Lands),
        ExtraKind::ToItself => ("self-transfer", Verdict::Flagged),
        ExtraKind::Moved => ("move", Verdict::Repeats),
    }
}

#[derive(Debug, Default)]
struct Sum {
    records: u64,
    amount: Amount,
}

impl Sum {
    fn told(&self, currency: &'static str, kind: &'static str) -> CurrencySum {
        CurrencySum { currency, kind, records: self.records, amount: self.amount.to_string() }
    }
}

/// The truth in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Records that a walk which nothing disturbs meets.
    pub count: u64,
    /// How many of them a right migration has in its target in the end, flagged ones included.
    pub good: u64,
    /// How many must fail.
    pub bad: u64,
    /// How many are the same as one before, byte for byte.
    pub repeated: u64,
    /// Different ids, counting each record without one.
    pub distinct_ids: u64,
    /// The sums of the good records, by currency and type.
    pub sums: Vec<CurrencySum>,
    /// The ids of the bad ones, or those they would have.
    pub bad_ids: Vec<BadIds>,
    /// The ids of those that the checks of a migration should notice.
    pub flagged_ids: Vec<FlaggedIds>,
}

/// The sum of the amounts of one currency and type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CurrencySum {
    /// The currency.
    pub currency: &'static str,
    /// The type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// How many records.
    pub records: u64,
    /// Their sum as exact text with four places.
    pub amount: String,
}

/// The bad records of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadIds {
    /// The fault's name.
    pub fault: String,
    /// Why they fail.
    pub reason: &'static str,
    /// Their ids.
    pub ids: Vec<String>,
}

/// The flagged records of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlaggedIds {
    /// The fault's name.
    pub fault: String,
    /// Their ids.
    pub ids: Vec<String>,
}

/// A row as one line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    index: u64,
    id: String,
    seq: u64,
    account_id: u64,
    customer_id: u64,
    wallet_uuid: String,
    customer_uuid: String,
    #[serde(rename = "type")]
    kind: &'static str,
    amount: String,
    currency: &'static str,
    balance_before: String,
    balance_after: String,
    reference: String,
    status: &'static str,
    narration: Option<&'a str>,
    metadata: &'a serde_json::value::RawValue,
    created_at_ms: i64,
    fault: Option<&'a str>,
    verdict: &'static str,
    reason: Option<&'static str>,
}

impl Row {
    /// The row as JSON text, with a line feed.
    #[must_use]
    pub fn line(&self) -> String {
        let log = &self.log;
        let (verdict, reason) = match self.verdict {
            Verdict::Lands => ("lands", None),
            Verdict::Flagged => ("flagged", None),
            Verdict::Repeats => ("repeats", None),
            Verdict::Fails(reason) => ("fails", Some(reason)),
        };
        let line = Line {
            index: log.index,
            id: log.id.to_string(),
            seq: log.seq,
            account_id: log.account,
            customer_id: log.customer,
            wallet_uuid: log.wallet_id.to_string(),
            customer_uuid: log.customer_id.to_string(),
            kind: log.kind.name(),
            amount: log.amount.to_string(),
            currency: log.currency,
            balance_before: log.balance_before.to_string(),
            balance_after: log.balance_after.to_string(),
            reference: log.reference.to_string(),
            status: log.status,
            narration: self.narration.as_deref(),
            metadata: serde_json::from_str(&self.metadata).expect("metadata is JSON"),
            created_at_ms: log.created_at_ms,
            fault: self.fault.as_deref(),
            verdict,
            reason,
        };
        serde_json::to_string(&line).expect("texts and numbers") + "\n"
    }
}
