//! The rules of a run that every process of the job obeys. They are kept with the job.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use engine::store::jobs;
use engine::{JobId, RejectLimit, Store};
use serde::{Deserialize, Serialize};

use crate::kind::Words;
use crate::service::{Error, Ledgers};

/// Of a hundred records of a ledger five may fail, if nothing else is said.
pub const REJECTS: RejectLimit = RejectLimit::Share(50_000);

/// How many rows a process may write in a second; written `2000` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RowRate(pub Option<NonZeroU32>);

/// A text that is no [`RowRate`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no rate; write a number of rows a second from 1, or off")]
pub struct RowRateError(String);

impl FromStr for RowRate {
    type Err = RowRateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self(None)),
            rows => rows.parse().map(|rows| Self(Some(rows))).map_err(|_| RowRateError(text.to_owned())),
        }
    }
}

impl fmt::Display for RowRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("off"),
            Some(rows) => rows.fmt(f),
        }
    }
}

/// What is said of a run; what is not said stays as it is with the job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    /// How many records may fail before the job stops.
    pub stop_on_rejects: Option<RejectLimit>,
    /// How many rows each process may write in a second.
    pub rows_per_second: Option<RowRate>,
}

impl Rules {
    pub(crate) fn keep(self, words: &mut Words) {
        words.stop_on_rejects = self.stop_on_rejects.or(words.stop_on_rejects);
        words.rows_per_second = self.rows_per_second.or(words.rows_per_second);
    }
}

impl Ledgers {
    /// Keeps rules with a job. A process that runs it now goes on with those it began with; those that begin later have
    /// the new ones.
    ///
    /// # Errors
    /// [`Error::NoSuchJob`]; those of the database.
    pub async fn set_rules(&self, id: JobId, rules: Rules) -> Result<(), Error> {
        if rules == Rules::default() {
            return Ok(());
        }
        let job = Store::new(self.database.clone()).job(id).await?.ok_or(Error::NoSuchJob(id))?;
        let mut words: Words = serde_json::from_str(&job.params).unwrap_or_default();
        rules.keep(&mut words);
        let mut tx = self.database.begin().await?;
        jobs::set_params(tx.conn(), id, &words.text()).await?;
        tx.commit().await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_of_rows_or_off() {
        for text in ["1", "2000", "off"] {
            assert_eq!(text.parse::<RowRate>().unwrap().to_string(), text);
        }
        for text in ["", "0", "-1", "1.5", "1k", "4294967296"] {
            assert!(text.parse::<RowRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_said_stays() {
        let mut words = Words::default();
        let rules = |limit: Option<&str>, rate: Option<&str>| Rules {
            stop_on_rejects: limit.map(|text| text.parse().unwrap()),
            rows_per_second: rate.map(|text| text.parse().unwrap()),
        };
        rules(Some("7%"), Some("100")).keep(&mut words);
        rules(None, None).keep(&mut words);
        assert_eq!(words.stop_on_rejects, Some(RejectLimit::Share(70_000)));
        rules(None, Some("off")).keep(&mut words);
        assert_eq!(words.rows_per_second, Some(RowRate(None)));
        assert_eq!(words.stop_on_rejects, Some(RejectLimit::Share(70_000)));
    }
}
