//! The hosts of short URLs that a check met at the source, and where their slugs go.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::IncomingAddress;
use crate::routes::{Route, Routes};

/// Hosts that are kept by name; what stands on further ones is counted together.
pub const HOSTS_MAX: usize = 1_000;

/// One host of short URLs at the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMet {
    /// The host, as the source names it.
    pub host: String,
    /// How many slugs stand on it there.
    pub slugs: u64,
    /// Whether it is the vendor's own, so that the public address of its links changes.
    pub is_vendors: bool,
    /// The domain they go to here; `None` if they are left out.
    pub domain: Option<String>,
    /// The reason's stable code if they are left out: `other_domain` or `vendor_domain`.
    pub left_out: Option<String>,
}

/// All of them, those with the most slugs first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsMet {
    /// At most [`HOSTS_MAX`].
    pub met: Vec<HostMet>,
    /// Slugs on hosts beyond these.
    pub others: u64,
}

impl fmt::Display for HostMet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> ", self.host, Grouped(self.slugs))?;
        match (&self.domain, self.is_vendors) {
            (Some(domain), false) => f.write_str(domain),
            (Some(domain), true) => write!(f, "(vendor's own host) {domain}"),
            (None, true) if self.left_out.as_deref() == Some("vendor_domain") => write!(
                f,
                "(vendor's own host) left out; --map-domain {}=YOURHOST says where they go",
                self.host
            ),
            (None, _) => f.write_str("left out; this import is limited to other hosts"),
        }
    }
}

impl HostsMet {
    /// A line for each of the first `limit` hosts, and one for all others.
    pub fn lines(&self, limit: usize) -> Vec<String> {
        let mut lines: Vec<String> = self.met.iter().take(limit).map(HostMet::to_string).collect();
        let rest = &self.met[lines.len()..];
        let others = self.others + rest.iter().map(|host| host.slugs).sum::<u64>();
        if others > 0 {
            lines.push(format!("further hosts {}", Grouped(others)));
        }
        lines
    }
}

/// With a comma between groups of three digits.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// Counts hosts; bounded.
#[derive(Debug, Default)]
pub(crate) struct HostCounts {
    slugs: HashMap<String, u64>,
    others: u64,
}

impl HostCounts {
    pub(crate) fn count(&mut self, host: &str) {
        if let Some(slugs) = self.slugs.get_mut(host) {
            *slugs += 1;
        } else if self.slugs.len() < HOSTS_MAX {
            self.slugs.insert(host.to_owned(), 1);
        } else {
            self.others += 1;
        }
    }

    /// What was counted so far, with where it goes.
    pub(crate) fn met(&self, routes: &Routes) -> HostsMet {
        let mut met: Vec<HostMet> =
            self.slugs.iter().map(|(host, slugs)| host_met(routes, host, *slugs)).collect();
        met.sort_unstable_by(|a, b| b.slugs.cmp(&a.slugs).then_with(|| a.host.cmp(&b.host)));
        HostsMet { met, others: self.others }
    }
}

fn host_met(routes: &Routes, host: &str, slugs: u64) -> HostMet {
    let address = IncomingAddress { host: host.to_owned(), slug: String::new() };
    let (domain, left_out) = match routes.route(&address) {
        Route::To(domain) => (Some(domain.host.to_string()), None),
        Route::Filtered(reason) | Route::VendorOwned(reason) => (None, Some(reason.code.into_owned())),
    };
    let is_vendors = routes.vendor_hosts.contains(&host);
    HostMet { host: host.to_owned(), slugs, is_vendors, domain, left_out }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(
        host: &str,
        slugs: u64,
        domain: Option<&str>,
        left_out: Option<&str>,
        is_vendors: bool,
    ) -> HostMet {
        HostMet {
            host: host.into(),
            slugs,
            is_vendors,
            domain: domain.map(str::to_owned),
            left_out: left_out.map(str::to_owned),
        }
    }

    #[test]
    fn a1_6_each_host_is_a_line_and_the_rest_is_one() {
        let hosts = HostsMet {
            met: vec![
                met("go.acme.com", 1_204, Some("go.example.com"), None, false),
                met("bit.ly", 377, Some("go.example.com"), None, true),
                met("j.mp", 12, None, Some("vendor_domain"), true),
                met("x.example", 1, None, Some("other_domain"), false),
            ],
            others: 1_000_000,
        };
        assert_eq!(
            hosts.lines(10),
            [
                "go.acme.com 1,204 -> go.example.com",
                "bit.ly 377 -> (vendor's own host) go.example.com",
                "j.mp 12 -> (vendor's own host) left out; --map-domain j.mp=YOURHOST says where they go",
                "x.example 1 -> left out; this import is limited to other hosts",
                "further hosts 1,000,000",
            ]
        );
        assert_eq!(hosts.lines(2)[2..], ["further hosts 1,000,013"]);
        assert_eq!(HostsMet { others: 0, ..hosts }.lines(4).len(), 4);
    }

    #[test]
    fn hosts_beyond_the_bound_are_counted_together() {
        let mut counts = HostCounts::default();
        for _ in 0..2 {
            for host in 0..HOSTS_MAX + 5 {
                counts.count(&format!("h{host}.example.com"));
            }
        }
        assert_eq!((counts.slugs.len(), counts.others), (HOSTS_MAX, 10));
    }
}
