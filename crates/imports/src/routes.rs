//! Which domain an address of the source goes to.

use std::collections::{BTreeMap, BTreeSet};

use engine::Reason;
use links::Domain;

use crate::IncomingAddress;

/// The job's rule for hosts, with the domains it leads to.
#[derive(Debug, Clone)]
pub struct Routes {
    /// Every slug goes here unless its host is mapped.
    pub target: Domain,
    /// Hosts that go elsewhere.
    pub mapped: BTreeMap<String, Domain>,
    /// If not empty: only slugs on these hosts.
    pub only: BTreeSet<String>,
    /// Hosts that belong to the vendor and cannot be kept.
    pub vendor_hosts: &'static [&'static str],
}

/// Where an address goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route<'r> {
    /// To this domain.
    To(&'r Domain),
    /// Nowhere: the job's filter leaves its host out.
    Filtered(Reason),
    /// Nowhere: the host is the vendor's and the job does not say where its slugs go.
    VendorOwned(Reason),
}

impl Routes {
    /// Where this address goes.
    pub fn route(&self, address: &IncomingAddress) -> Route<'_> {
        let host = address.host.as_str();
        if !self.only.is_empty() && !self.only.contains(host) {
            return Route::Filtered(Reason::new(
                "other_domain",
                format!("{host}/{} is not on a host this import was limited to", address.slug),
            ));
        }
        if let Some(domain) = self.mapped.get(host) {
            return Route::To(domain);
        }
        if self.vendor_hosts.contains(&host) {
            return Route::VendorOwned(Reason::new(
                "vendor_domain",
                format!(
                    "{host}/{} stands on a domain of the vendor, which cannot move; \
                     say where it goes with --map-domain {host}=YOURHOST (its public address changes)",
                    address.slug
                ),
            ));
        }
        Route::To(&self.target)
    }

    /// Every domain that slugs may go to.
    pub fn domains(&self) -> impl Iterator<Item = &Domain> {
        std::iter::once(&self.target).chain(self.mapped.values())
    }
}
