//! Counting clicks without making anybody wait: blocks first, sums per link and hour later.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use db::{Conn, Id, Timestamp, Tx};

use crate::Result;
use crate::store::{postgres, sqlite};

/// The most clicks in one block; a block that tells of more is damaged.
pub const CLICKS_PER_BATCH: usize = 1_000;

/// The first byte of every block. An old block stays readable when another form comes.
const VERSION: u8 = 1;

const HOUR_MICROS: i64 = 3_600_000_000;

/// The hours that a block can name: about the years 1 to 3900, which both databases can keep.
const HOURS: RangeInclusive<i64> = -17_000_000..=17_000_000;

/// One visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Click {
    /// The link.
    pub link_id: Id,
    /// When; kept to the hour.
    pub at: Timestamp,
    /// Whether it came from a preview, a crawler or another program.
    pub bot: bool,
}

/// Clicks of one link within one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// By people, as far as one can tell.
    pub humans: i64,
    /// By programs.
    pub bots: i64,
}

/// Sums by link and hour (hours since the Unix epoch).
type Sums = BTreeMap<(Id, i64), Count>;

/// Writes clicks as one block, in one insert.
///
/// # Errors
/// The database's.
pub async fn record_clicks(tx: &mut Tx, taken_at: Timestamp, clicks: &[Click]) -> Result<()> {
    for part in clicks.chunks(CLICKS_PER_BATCH) {
        db::dispatch!(tx.conn(), insert_click_batch(Id::new(), taken_at, &encode(part)))?;
    }
    Ok(())
}

/// What [`roll_up`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolledUp {
    /// Blocks that were folded into the sums and deleted.
    pub folded: u64,
    /// Blocks that cannot be read: damaged, or written by a newer version. They are kept, and only a version that
    /// knows more looks at them again.
    pub set_aside: Vec<Id>,
}

impl RolledUp {
    /// How many blocks were looked at.
    pub fn blocks(&self) -> u64 {
        self.folded + self.set_aside.len() as u64
    }
}

/// Folds up to `max_batches` blocks into the sums and deletes them, in the caller's transaction; one that cannot be
/// read is set aside. Several processes may do so at once: each takes other blocks.
///
/// # Errors
/// The database's.
pub async fn roll_up(tx: &mut Tx, max_batches: u32) -> Result<RolledUp> {
    let form = i64::from(VERSION);
    let batches = db::dispatch!(tx.conn(), lock_click_batches(form, i64::from(max_batches)))?;
    let mut sums = Sums::new();
    let (mut folded, mut set_aside) = (Vec::new(), Vec::new());
    for (id, block) in &batches {
        let Some(entries) = decode(block) else {
            set_aside.push(*id);
            continue;
        };
        for (key, count) in entries {
            let sum = sums.entry(key).or_default();
            sum.humans += count.humans;
            sum.bots += count.bots;
        }
        folded.push(*id);
    }
    if !set_aside.is_empty() {
        db::dispatch!(tx.conn(), set_click_batches_aside(&set_aside, form))?;
    }
    if folded.is_empty() {
        return Ok(RolledUp { folded: 0, set_aside });
    }
    let rows: Vec<(Id, Timestamp, Count)> = sums
        .into_iter()
        .map(|((link_id, hour), count)| (link_id, Timestamp::from_micros(hour * HOUR_MICROS), count))
        .collect();
    db::dispatch!(tx.conn(), add_clicks(&rows))?;
    let folded = db::dispatch!(tx.conn(), delete_click_batches(&folded))?;
    Ok(RolledUp { folded, set_aside })
}

/// The sums of these links, without what is still in blocks. A link without clicks is missing in the answer.
///
/// # Errors
/// The database's.
pub async fn click_totals(conn: Conn<'_>, link_ids: &[Id]) -> Result<Vec<(Id, Count)>> {
    let rows = db::dispatch!(conn, click_totals(link_ids))?;
    Ok(rows.into_iter().map(|(id, humans, bots)| (id, Count { humans, bots })).collect())
}

/// A link's clicks by hour, oldest first, in `[from, to)`.
///
/// # Errors
/// The database's.
pub async fn clicks_by_hour(
    conn: Conn<'_>,
    link_id: Id,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<(Timestamp, Count)>> {
    let rows = db::dispatch!(conn, clicks_by_hour(link_id, from, to))?;
    Ok(rows.into_iter().map(|(hour, humans, bots)| (hour, Count { humans, bots })).collect())
}

/// The version, then for each link and hour four numbers: how far link and hour are from the entry before, humans
/// and bots; each in 7 bits a byte, lowest first.
fn encode(clicks: &[Click]) -> Vec<u8> {
    let mut sums = Sums::new();
    for click in clicks {
        let count = sums.entry((click.link_id, click.at.micros().div_euclid(HOUR_MICROS))).or_default();
        if click.bot { count.bots += 1 } else { count.humans += 1 }
    }
    let mut block = vec![VERSION];
    let (mut last_link, mut last_hour) = (0, 0);
    for ((link_id, hour), count) in sums {
        push(&mut block, zigzag(link_id.get().wrapping_sub(last_link)));
        push(&mut block, zigzag(hour.wrapping_sub(last_hour)));
        push(&mut block, count.humans.cast_unsigned());
        push(&mut block, count.bots.cast_unsigned());
        (last_link, last_hour) = (link_id.get(), hour);
    }
    block
}

/// What a block tells, by link and hour; `None` if it cannot be read.
fn decode(block: &[u8]) -> Option<Vec<((Id, i64), Count)>> {
    let (version, mut rest) = block.split_first()?;
    if *version != VERSION {
        return None;
    }
    let mut entries = Vec::new();
    let (mut link, mut hour, mut clicks) = (0i64, 0i64, 0u64);
    while !rest.is_empty() {
        link = link.wrapping_add(unzigzag(pull(&mut rest)?));
        hour = hour.wrapping_add(unzigzag(pull(&mut rest)?));
        let (humans, bots) = (pull(&mut rest)?, pull(&mut rest)?);
        clicks = clicks.checked_add(humans)?.checked_add(bots)?;
        if clicks > CLICKS_PER_BATCH as u64 || !HOURS.contains(&hour) {
            return None;
        }
        let count = Count { humans: humans.cast_signed(), bots: bots.cast_signed() };
        entries.push(((Id::from_stored(link), hour), count));
    }
    Some(entries)
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

fn push(block: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        block.push(low_byte(number) | 0x80);
        number >>= 7;
    }
    block.push(low_byte(number));
}

fn low_byte(number: u64) -> u8 {
    u8::try_from(number & 0x7f).expect("seven bits fit")
}

fn pull(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_block_of_one_links_clicks_is_tiny() {
        let click =
            Click { link_id: Id::new(), at: Timestamp::from_micros(1_769_847_300_000_000), bot: false };
        assert!(encode(&vec![click; CLICKS_PER_BATCH]).len() < 20);
    }

    #[test]
    fn a_block_of_another_version_is_not_guessed_at() {
        for block in [&[][..], &[0], &[2], &[VERSION, 0x80], &[VERSION, 2, 2, 1]] {
            assert_eq!(decode(block), None, "{block:?}");
        }
        assert_eq!(decode(&[VERSION]), Some(Vec::new()));
    }

    #[test]
    fn a_block_that_tells_what_cannot_be_is_damaged() {
        let block = |hour: i64, humans: u64, bots: u64| {
            let mut block = vec![VERSION];
            for number in [2, zigzag(hour), humans, bots] {
                push(&mut block, number);
            }
            block
        };
        assert!(decode(&block(491_624, 999, 1)).is_some());
        for (hour, humans, bots) in [
            (491_624, 999, 2),
            (491_624, u64::MAX, 1),
            (491_624, 0, i64::MAX.cast_unsigned()),
            (HOURS.end() + 1, 1, 0),
            (i64::MIN, 1, 0),
        ] {
            assert_eq!(decode(&block(hour, humans, bots)), None, "{hour} {humans} {bots}");
        }
    }

    proptest! {
        #[test]
        fn a_block_gives_back_its_sums(clicks in prop::collection::vec((any::<i64>(), any::<i32>(), any::<bool>()), 0..50)) {
            let clicks: Vec<Click> = clicks
                .into_iter()
                .map(|(link, hour, bot)| Click {
                    link_id: Id::from_stored(link),
                    at: Timestamp::from_micros(i64::from(hour) * 10_000_000),
                    bot,
                })
                .collect();
            let sums: Sums = decode(&encode(&clicks)).unwrap().into_iter().collect();
            let total: i64 = sums.values().map(|count| count.humans + count.bots).sum();
            prop_assert_eq!(total, clicks.len() as i64);
            for click in &clicks {
                let count = sums[&(click.link_id, click.at.micros().div_euclid(HOUR_MICROS))];
                let counted = if click.bot { count.bots } else { count.humans };
                prop_assert!(counted > 0);
            }
        }

        #[test]
        fn any_bytes_are_a_block_or_not(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode(&bytes);
        }
    }
}
