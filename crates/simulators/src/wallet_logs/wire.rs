//! How a record is written.
//!
//! Bytes are put into a buffer by hand: an export must never be what a migration waits for.

use super::{
    log::Log,
    oddity::{Oddity, TextOddity, TimeOddity},
};
use crate::{
    date,
    encoding::{self, Escapes},
};

const CHANNELS: [&str; 4] = ["mobile", "web", "pos", "api"];
const SYSTEMS: [&str; 4] = ["android", "ios", "web", "none"];
const INTO: [&str; 4] = ["wallet top-up", "salary", "refund of order", "transfer from friend"];
const OUT_OF: [&str; 4] = ["bill payment", "airtime", "market purchase", "transfer to friend"];
/// One narration of sixteen is beyond plain letters.
const BEYOND_PLAIN: u64 = 15;

/// How a record looks beside its values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look<'a> {
    pub(super) oddity: Option<&'a Oddity>,
    /// Somebody edited the record after it was first served.
    pub(super) edited: bool,
    /// The record is a transfer of its wallet to itself.
    pub(super) to_itself: bool,
}

/// Writes a record as one JSON object.
pub(super) fn record(out: &mut Vec<u8>, log: &Log, look: Look<'_>) {
    let oddity = look.oddity;
    out.push(b'{');
    id(out, log, oddity);
    out.extend_from_slice(b"\"seq\":");
    number(out, log.seq);
    out.extend_from_slice(b",\"wallet_id\":\"");
    log.wallet_id.write(out);
    out.extend_from_slice(b"\",\"customer_id\":\"");
    log.customer_id.write(out);
    out.extend_from_slice(b"\",\"type\":\"");
    match oddity {
        Some(Oddity::UnknownType(kind)) => out.extend_from_slice(kind.as_bytes()),
        _ => out.extend_from_slice(log.kind.name().as_bytes()),
    }
    out.extend_from_slice(b"\",\"amount\":");
    amount(out, log, oddity);
    out.extend_from_slice(b",\"currency\":\"");
    out.extend_from_slice(log.currency.as_bytes());
    out.extend_from_slice(b"\",\"balance_before\":\"");
    log.balance_before.write(out);
    out.extend_from_slice(b"\",\"balance_after\":\"");
    log.balance_after.write(out);
    out.extend_from_slice(b"\",\"reference\":\"");
    log.reference.write(out);
    out.extend_from_slice(b"\",\"status\":\"");
    out.extend_from_slice(log.status.as_bytes());
    out.push(b'"');
    narration(out, log, look);
    out.extend_from_slice(b",\"metadata\":");
    metadata(out, log, look.to_itself);
    created_at(out, log, oddity);
    out.push(b'}');
}

fn id(out: &mut Vec<u8>, log: &Log, oddity: Option<&Oddity>) {
    match oddity {
        Some(Oddity::MissingId) => {}
        Some(Oddity::NullId) => out.extend_from_slice(b"\"id\":null,"),
        Some(Oddity::NumericId) => {
            out.extend_from_slice(b"\"id\":");
            number(out, numeric_id(log.index));
            out.push(b',');
        }
        _ => {
            out.extend_from_slice(b"\"id\":\"");
            log.id.write(out);
            out.extend_from_slice(b"\",");
        }
    }
}

/// A number that no binary floating-point number of 64 bits is equal to.
pub(super) const fn numeric_id(index: u64) -> u64 {
    (1 << 53) + 1 + 2 * index
}

fn amount(out: &mut Vec<u8>, log: &Log, oddity: Option<&Oddity>) {
    match oddity {
        Some(Oddity::Amount(text)) => out.extend_from_slice(text.as_bytes()),
        Some(Oddity::AmountNumber) => log.amount.write(out),
        // A value is missing, and the record still has its quotes and brackets in pairs.
        Some(Oddity::BrokenJson) => {}
        _ => {
            out.push(b'"');
            log.amount.write(out);
            out.push(b'"');
        }
    }
}

fn narration(out: &mut Vec<u8>, log: &Log, look: Look<'_>) {
    let text = match look.oddity {
        Some(Oddity::Text(text)) => Some(text),
        _ => None,
    };
    if text == Some(&TextOddity::Missing) {
        return;
    }
    out.extend_from_slice(b",\"narration\":");
    match text {
        Some(TextOddity::Null) => return out.extend_from_slice(b"null"),
        Some(TextOddity::Nul) => return out.extend_from_slice(br#""a\u0000b""#),
        Some(TextOddity::LoneSurrogate) => return out.extend_from_slice(br#""a\ud835b""#),
        Some(TextOddity::InvalidUtf8) => return out.extend_from_slice(b"\"a\xFFb\""),
        _ => {}
    }
    if look.edited || log.detail & 15 == BEYOND_PLAIN {
        encoding::write_json_string(out, &narration_text(log, look.edited), Escapes::default());
        return;
    }
    out.push(b'"');
    plain_narration(out, log);
    out.push(b'"');
}

fn plain_narration(out: &mut Vec<u8>, log: &Log) {
    let words = match log.kind {
        super::Kind::Credit => &INTO,
        super::Kind::Debit => &OUT_OF,
    };
    out.extend_from_slice(words[(log.detail >> 4 & 3) as usize].as_bytes());
    out.push(b' ');
    number(out, log.detail >> 20 & 0xFFFF);
}

/// The narration of a record without oddities.
pub(super) fn narration_text(log: &Log, edited: bool) -> String {
    let mut out = Vec::with_capacity(48);
    plain_narration(&mut out, log);
    let mut text = String::from_utf8(out).expect("letters and digits");
    if log.detail & 15 == BEYOND_PLAIN {
        text.push_str(
            [" \"Café\" ₦", " C:\\Ọjà\\№7", " 日本 🚀", "\tÀkàrà\u{2028}"][(log.detail >> 6 & 3) as usize],
        );
    }
    if edited {
        text.push_str(" (edited)");
    }
    text
}

/// The metadata as JSON text.
pub(super) fn metadata(out: &mut Vec<u8>, log: &Log, to_itself: bool) {
    let detail = log.detail;
    out.extend_from_slice(b"{\"channel\":\"");
    out.extend_from_slice(CHANNELS[(detail >> 8 & 3) as usize].as_bytes());
    out.extend_from_slice(b"\",\"device\":{\"id\":\"d");
    number(out, detail >> 12 & 0xF_FFFF);
    out.extend_from_slice(b"\",\"os\":\"");
    out.extend_from_slice(SYSTEMS[(detail >> 10 & 3) as usize].as_bytes());
    out.extend_from_slice(b"\"},\"fee\":\"");
    super::Amount::of_units((detail >> 32 & 0x7_FFFF).into()).write(out);
    out.extend_from_slice(b"\",\"ip\":\"10.");
    number(out, detail >> 16 & 255);
    out.push(b'.');
    number(out, detail >> 24 & 255);
    out.push(b'.');
    number(out, detail >> 32 & 255);
    out.extend_from_slice(b"\",\"tier\":");
    number(out, detail >> 40 & 3);
    if to_itself {
        out.extend_from_slice(b",\"counterparty_wallet_id\":\"");
        log.wallet_id.write(out);
        out.push(b'"');
    }
    out.push(b'}');
}

fn created_at(out: &mut Vec<u8>, log: &Log, oddity: Option<&Oddity>) {
    let time = match oddity {
        Some(Oddity::Time(time)) => Some(time),
        _ => None,
    };
    let (shift_ms, zone): (i64, &[u8]) = match time {
        Some(TimeOddity::Missing) => return,
        Some(TimeOddity::Null) => return out.extend_from_slice(b",\"created_at\":null"),
        Some(TimeOddity::Text(text)) => {
            out.extend_from_slice(b",\"created_at\":");
            return encoding::write_json_string(out, text, Escapes::default());
        }
        Some(TimeOddity::Local) => (0, b""),
        Some(TimeOddity::OtherOffset) => (3_600_000, b"+01:00"),
        None => (0, b"Z"),
    };
    out.extend_from_slice(b",\"created_at\":\"");
    date::write_millis(out, log.created_at_ms + shift_ms, zone);
    out.push(b'"');
}

/// Writes a whole number.
pub(super) fn number(out: &mut Vec<u8>, mut value: u64) {
    let mut text = [0_u8; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at..]);
}
