//! Who is asking, when proxies stand in between.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";
/// More hops than any chain of proxies has; the rest of a forged header is not read.
const HOPS_MAX: usize = 32;

/// The networks whose `X-Forwarded-For` is believed. Nobody's, by default.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

/// The address of the client, as far as it can be trusted; an extension of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl TrustedProxies {
    /// Believes proxies in these networks.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// The client's address: the connection's peer, or, if that is a trusted proxy, the right-most address in
    /// `X-Forwarded-For` that is not one. What stands left of it the client may have written itself.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
        let mut client = peer.to_canonical();
        if self.0.is_empty() {
            return ClientAddress(client);
        }
        let lines: Vec<&str> =
            headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok()).collect();
        let hops = lines.iter().rev().flat_map(|line| line.rsplit(',')).take(HOPS_MAX);
        for hop in hops {
            if !self.trusts(client) {
                break;
            }
            // An entry that cannot be read ends the chain: the last address that could is the best known.
            let Some(address) = parse(hop) else { break };
            client = address;
        }
        ClientAddress(client)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Some proxies add the port.
fn parse(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = text
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|with_port| with_port.ip()))
        .or_else(|_| text.trim_start_matches('[').trim_end_matches(']').parse())
        .ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_may_say_who_the_client_is() {
        let trusted = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]);
        let nobody = TrustedProxies::default();
        for (proxies, peer, header, client) in [
            (&nobody, "10.0.0.1", Some("1.2.3.4"), "10.0.0.1"),
            (&trusted, "10.0.0.1", None, "10.0.0.1"),
            (&trusted, "10.0.0.1", Some("1.2.3.4"), "1.2.3.4"),
            (&trusted, "192.0.2.7", Some("1.2.3.4"), "192.0.2.7"),
            (&trusted, "10.0.0.1", Some("6.6.6.6, 1.2.3.4, 10.0.0.2"), "1.2.3.4"),
            (&trusted, "10.0.0.1", Some("10.9.9.9, 10.0.0.2"), "10.9.9.9"),
            (&trusted, "10.0.0.1", Some("1.2.3.4, nonsense"), "10.0.0.1"),
            (&trusted, "10.0.0.1", Some("1.2.3.4:5678"), "1.2.3.4"),
            (&trusted, "::1", Some("[2001:db8::1]:80"), "2001:db8::1"),
            (&trusted, "::ffff:10.0.0.1", Some("1.2.3.4"), "1.2.3.4"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(FORWARDED_FOR, header.parse().unwrap());
            }
            let found = proxies.client(peer.parse().unwrap(), &headers);
            assert_eq!(found.0, client.parse::<IpAddr>().unwrap(), "{peer} {header:?}");
        }
    }

    #[test]
    fn several_header_lines_read_as_one_list() {
        let trusted = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED_FOR, "6.6.6.6".parse().unwrap());
        headers.append(FORWARDED_FOR, "1.2.3.4, 10.0.0.2".parse().unwrap());
        assert_eq!(trusted.client("10.0.0.1".parse().unwrap(), &headers).0.to_string(), "1.2.3.4");
    }
}
