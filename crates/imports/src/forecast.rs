//! What an import will need of its source, asked before it starts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a vendor foretells of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// Whose account it is, where the vendor tells.
    pub account: Option<String>,
    /// The parts of the account (groups, workspaces), those left out included.
    pub parts: Vec<ForecastPart>,
    /// API calls that the import will need.
    pub calls: u64,
    /// How far that number can be relied on.
    pub certainty: Certainty,
    /// Records that one call brings.
    pub records_per_call: u64,
    /// Calls of this month, where the vendor tells.
    pub month: Option<Allowance>,
}

/// One part of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForecastPart {
    /// The vendor's id of it.
    pub key: String,
    /// What people call it.
    pub name: Option<String>,
    /// The domains it has there.
    pub domains: Vec<String>,
    /// Whether it comes over.
    pub comes_over: bool,
    /// How many links it has, as far as that is known.
    pub links: Option<u64>,
}

/// How far a number of calls can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Every record was counted.
    Exact,
    /// By samples.
    Estimated,
    /// It will be more, nobody knows how much.
    AtLeast,
}

/// A limit and how much of it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// Calls allowed.
    pub limit: u64,
    /// Calls that are left.
    pub left: u64,
}

/// For example `about 12 API calls (one for 100 links); 940 of 1000 are left this month`.
impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = match self.certainty {
            Certainty::Exact => "",
            Certainty::Estimated => "about ",
            Certainty::AtLeast => "at least ",
        };
        write!(f, "{about}{} API calls (one for {} links)", self.calls, self.records_per_call)?;
        match self.month {
            Some(month) => write!(f, "; {} of {} are left this month", month.left, month.limit),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a1_12_a_forecast_says_how_many_calls_and_how_many_are_left() {
        let mut forecast = Forecast {
            account: None,
            parts: Vec::new(),
            calls: 12,
            certainty: Certainty::Exact,
            records_per_call: 100,
            month: None,
        };
        assert_eq!(forecast.to_string(), "12 API calls (one for 100 links)");
        forecast.month = Some(Allowance { limit: 1000, left: 940 });
        for (certainty, words) in [(Certainty::Estimated, "about"), (Certainty::AtLeast, "at least")] {
            forecast.certainty = certainty;
            let expected =
                format!("{words} 12 API calls (one for 100 links); 940 of 1000 are left this month");
            assert_eq!(forecast.to_string(), expected);
        }
    }
}
