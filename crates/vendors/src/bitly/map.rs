//! What a record of Bitly becomes.

use engine::Reason;
use imports::{Incoming, IncomingAddress, IncomingLink, Mapper, Unreadable};
use serde::Deserialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;

use super::wire::{DeepLink, Link, Routing};
use crate::dates::{self, DateError};
use crate::provenance::provenance;
use crate::texts::{excerpt, one_line};
use crate::{field, record, short_url};

const VENDOR_HOSTS: &[&str] = &["bit.ly", "j.mp", "bitly.com", "bitly.is"];

const LEFT_BEHIND: &[&str] = &[
    "Click history stays at Bitly: its list of links holds no numbers. Counting begins anew.",
    "QR codes and their designs stay at Bitly. Printed codes keep working if they carry your own domain, because the slug does.",
    "Campaigns and channels stay at Bitly; tags come over.",
    "Landing pages (Link-in-bio, launchpads) stay at Bitly.",
    "Deep links come over as the addresses to install the app for iOS and Android; paths into an app only as notes of their link.",
    "Routing rules come over where they choose by country alone, or by iOS or Android alone; others are listed.",
    "Who created a link is kept in its stored record only.",
    "Links on bit.ly and other domains of Bitly cannot keep their address; map them to a domain of yours.",
];

/// Fields whose quotes are mended where Bitly forgot to escape them.
const FREE_TEXTS: &[&str] = &["title", "tags"];

/// Most characters of a path or an address in a note; browsers and app stores take no longer ones.
const NOTED_CHARS_MAX: usize = 2_048;

/// Go's zero time: a date that was never set.
const NEVER_SET: &str = "0001-01-01T00:00:00";

/// Reads Bitly's records.
#[derive(Debug, Clone, Copy, Default)]
pub struct BitlyMapper;

impl Mapper for BitlyMapper {
    fn vendor(&self) -> &'static str {
        "bitly"
    }

    fn vendor_hosts(&self) -> &'static [&'static str] {
        VENDOR_HOSTS
    }

    fn left_behind(&self) -> &'static [&'static str] {
        LEFT_BEHIND
    }

    fn map(&self, raw: &[u8]) -> Result<Incoming, Unreadable> {
        let json = record::open(raw, FREE_TEXTS).map_err(|reason| unopened(raw, reason))?;
        let link = read(&json).map_err(|reason| unopened(raw, reason))?;
        let id = match field::text(link.id, "/id") {
            Ok(Some(id)) if !id.is_empty() => id,
            Ok(_) => return Err(nameless(Reason::new("missing_id", "/id is missing, null or empty"))),
            Err(reason) => return Err(nameless(reason)),
        };
        mapped(&id, &link, &json).map_err(|reason| Unreadable {
            label: label(&id),
            source_id: Some(id),
            reason,
        })
    }
}

/// Finds the fields of a record; each is read on its own later.
fn read(json: &str) -> Result<Link<'_>, Reason> {
    if !json.trim_start().starts_with('{') {
        return Err(Reason::new("unexpected_type", format!("the record is no object but {}", excerpt(json))));
    }
    serde_json::from_str(json).map_err(|error| record::malformed(&error, json))
}

fn mapped(id: &str, link: &Link<'_>, json: &str) -> Result<Incoming, Reason> {
    if field::flag(link.is_deleted, "/is_deleted")? {
        let reason = Reason::new("deleted_at_source", "Bitly lists the link as deleted");
        return Ok(Incoming::Filtered { source_id: id.to_owned(), label: label(id), reason });
    }
    let destination = trimmed(&field::text(link.long_url, "/long_url")?.unwrap_or_default());
    if destination.is_empty() {
        let value = link.long_url.map_or("missing", RawValue::get);
        return Err(Reason::new("missing_destination", format!("/long_url is {value}")));
    }
    let mut incoming = IncomingLink {
        source_id: id.to_owned(),
        destination,
        title: field::text(link.title, "/title")?,
        tags: tags(link)?,
        archived: field::flag(link.archived, "/archived")?,
        expires_at: expires_at(link)?.map(Into::into),
        provenance: provenance(json, &["created_by"]),
        ..IncomingLink::default()
    };
    take_addresses(&mut incoming, id, link)?;
    match created_at(link)? {
        Ok(created_at) => incoming.created_at = created_at.map(Into::into),
        Err(_) => incoming.left_behind.push("created_at"),
    }
    route(&mut incoming, link)?;
    take_deep_links(&mut incoming, link)?;
    let elsewhere = [
        (link.qr_code_ids, "qr_codes"),
        (link.campaign_ids, "campaigns"),
        (link.launchpad_ids, "launchpads"),
    ];
    let elsewhere = elsewhere.into_iter().filter(|(raw, _)| field::is_present(*raw));
    incoming.left_behind.extend(elsewhere.map(|(_, word)| word));
    Ok(Incoming::Link(Box::new(incoming)))
}

/// A URL as browsers read it: without blanks and control characters around it (WHATWG URL, section 4.4).
fn trimmed(url: &str) -> String {
    url.trim_matches(|character| character <= ' ').to_owned()
}

/// The hash first, then every back-half, newest first; one that was told before is not told again. What is no
/// address costs nothing but itself.
fn take_addresses(incoming: &mut IncomingLink, id: &str, link: &Link<'_>) -> Result<(), Reason> {
    // Only the first slash parts the host from the slug; the slug may hold more (dub's importer lost them).
    let (host, slug) =
        id.split_once('/').filter(|(host, slug)| !host.is_empty() && !slug.is_empty()).ok_or_else(|| {
            Reason::new("unreadable_id", format!("/id is not host/slug but \"{}\"", excerpt(id)))
        })?;
    let hash = IncomingAddress {
        host: short_url::host(host).unwrap_or_else(|| host.to_lowercase()),
        // Encoded it could never be a slug here; as an id it stays as received.
        slug: short_url::decoded(slug).unwrap_or_else(|| slug.to_owned()),
    };
    take_address(incoming, storable(hash, "/id", id));
    match field::list(link.custom_bitlinks, "/custom_bitlinks") {
        Ok(back_halves) => {
            for (place, raw) in back_halves {
                take_address(incoming, back_half(raw, &place));
            }
        }
        Err(reason) => incoming.bad_addresses.push(reason),
    }
    Ok(())
}

fn take_address(incoming: &mut IncomingLink, read: Result<IncomingAddress, Reason>) {
    match read {
        Ok(address) if incoming.addresses.contains(&address) => {}
        Ok(address) => incoming.addresses.push(address),
        Err(reason) => incoming.bad_addresses.push(reason),
    }
}

fn back_half(raw: &RawValue, place: &str) -> Result<IncomingAddress, Reason> {
    let url = field::text(Some(raw), place)?.unwrap_or_default();
    let address = short_url::address(&url).ok_or_else(|| {
        Reason::new("unreadable_address", format!("{place} is no short URL but \"{}\"", excerpt(&url)))
    })?;
    storable(address, place, &url)
}

/// Decoding may bring to light what no database takes.
fn storable(address: IncomingAddress, place: &str, text: &str) -> Result<IncomingAddress, Reason> {
    if address.slug.contains('\0') {
        let detail = format!("{place} holds a NUL character: \"{}\"", excerpt(text));
        return Err(Reason::new("nul_in_text", detail));
    }
    Ok(address)
}

fn tags(link: &Link<'_>) -> Result<Vec<String>, Reason> {
    let tags = field::texts(link.tags, "/tags")?;
    Ok(tags.into_iter().map(|(_, tag)| tag).filter(|tag| !tag.trim().is_empty()).collect())
}

/// A date that says when a link ends must be read, or the link would live for ever.
fn expires_at(link: &Link<'_>) -> Result<Option<OffsetDateTime>, Reason> {
    let text = field::text(link.expiration_at, "/expiration_at")?.unwrap_or_default();
    instant(&text).map_err(|error| {
        Reason::new("unreadable_date", format!("/expiration_at is \"{}\": {error}", excerpt(&text)))
    })
}

/// When the link was made; a date that cannot be read costs the date and not the link.
fn created_at(link: &Link<'_>) -> Result<Result<Option<OffsetDateTime>, DateError>, Reason> {
    let text = field::text(link.created_at, "/created_at")?.unwrap_or_default();
    Ok(instant(&text))
}

fn instant(text: &str) -> Result<Option<OffsetDateTime>, DateError> {
    if text.is_empty() || text.starts_with(NEVER_SET) {
        return Ok(None);
    }
    dates::instant(text).map(Some)
}

/// Takes the routing rules that choose by country alone or by system alone; the first for a key counts.
fn route(incoming: &mut IncomingLink, link: &Link<'_>) -> Result<(), Reason> {
    let mut is_whole = true;
    for (place, raw) in field::list(link.dynamic_routing, "/dynamic_routing")? {
        let rule: Routing<'_> = object(raw, &place)?;
        is_whole &= take_rule(incoming, rule);
    }
    if !is_whole {
        incoming.left_behind.push("dynamic_routing");
    }
    Ok(())
}

/// Whether the rule can be said here, and was.
fn take_rule(incoming: &mut IncomingLink, rule: Routing<'_>) -> bool {
    let target = trimmed(&rule.long_url.unwrap_or_default());
    if target.is_empty() {
        return false;
    }
    let is_idle = |value: &serde_json::Value| match value {
        serde_json::Value::Null => true,
        serde_json::Value::Array(conditions) => conditions.is_empty(),
        serde_json::Value::String(text) => text.is_empty(),
        _ => false,
    };
    if !rule.others.iter().all(|(name, value)| is_idle(value) || is_bookkeeping(name)) {
        return false;
    }
    let countries = rule.country_match.unwrap_or_default();
    let systems = rule.os_match.unwrap_or_default();
    let devices = rule.device_match.unwrap_or_default();
    match (countries.is_empty(), systems.is_empty(), devices.is_empty()) {
        (false, true, true) => take_countries(incoming, &countries, &target),
        (true, false, true) => {
            systems_of(&systems).is_some_and(|systems| take_systems(incoming, systems, &target))
        }
        (true, true, false) => {
            devices_of(&devices).is_some_and(|systems| take_systems(incoming, systems, &target))
        }
        _ => false,
    }
}

/// Fields of a rule that are no conditions.
fn is_bookkeeping(name: &str) -> bool {
    matches!(name, "guid" | "id" | "bitlink" | "created" | "modified" | "references")
}

fn take_countries(incoming: &mut IncomingLink, countries: &[String], target: &str) -> bool {
    let mut is_whole = true;
    for country in countries {
        let country = country.trim().to_ascii_uppercase();
        if country.len() != 2 || !country.bytes().all(|byte| byte.is_ascii_uppercase()) {
            is_whole = false;
            continue;
        }
        is_whole &= incoming.geo.entry(country).or_insert_with(|| target.to_owned()) == target;
    }
    is_whole
}

/// The two systems that have an address of their own here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Systems {
    ios: bool,
    android: bool,
}

fn systems_of(names: &[String]) -> Option<Systems> {
    let mut systems = Systems::default();
    for name in names {
        match name.trim().to_ascii_lowercase().as_str() {
            "ios" => systems.ios = true,
            "android" => systems.android = true,
            _ => return None,
        }
    }
    Some(systems)
}

/// Devices stand for a system only if they are all that run it.
fn devices_of(names: &[String]) -> Option<Systems> {
    let (mut iphone, mut ipad, mut android) = (false, false, false);
    for name in names {
        match name.trim().to_ascii_lowercase().as_str() {
            "iphone" => iphone = true,
            "ipad" => ipad = true,
            "ios" => (iphone, ipad) = (true, true),
            "android" => android = true,
            _ => return None,
        }
    }
    (iphone == ipad).then_some(Systems { ios: iphone, android })
}

fn take_systems(incoming: &mut IncomingLink, systems: Systems, target: &str) -> bool {
    let mut is_whole = true;
    if systems.ios {
        is_whole &= incoming.ios_url.get_or_insert_with(|| target.to_owned()) == target;
    }
    if systems.android {
        is_whole &= incoming.android_url.get_or_insert_with(|| target.to_owned()) == target;
    }
    is_whole
}

/// Takes where to install the app. The path into the app has no place here, so it is noted for people.
fn take_deep_links(incoming: &mut IncomingLink, link: &Link<'_>) -> Result<(), Reason> {
    let mut notes = Vec::new();
    for (place, raw) in field::list(link.deeplinks, "/deeplinks")? {
        let deep_link: DeepLink = object(raw, &place)?;
        if !take_deep_link(incoming, &deep_link) {
            notes.push(note_on(&deep_link));
        }
    }
    if !notes.is_empty() {
        incoming.left_behind.push("deeplinks");
        incoming.notes.get_or_insert_with(|| notes.join("\n"));
    }
    Ok(())
}

fn take_deep_link(incoming: &mut IncomingLink, deep_link: &DeepLink) -> bool {
    let has_path = deep_link.app_uri_path.as_ref().is_some_and(|path| !path.is_empty());
    let installs = deep_link.install_type.as_deref() != Some("no_install");
    let url = deep_link.install_url.as_deref().map(trimmed).filter(|url| !url.is_empty() && installs);
    let systems = deep_link.os.as_ref().and_then(|os| systems_of(std::slice::from_ref(os)));
    match (url, systems) {
        (Some(url), Some(systems)) => take_systems(incoming, systems, &url) && !has_path,
        _ => false,
    }
}

/// `Deep link for ios: /store?id=1, install from https://apps.example.com/ios/id1`
fn note_on(deep_link: &DeepLink) -> String {
    let told = |text: &Option<String>| {
        text.as_deref().filter(|text| !text.is_empty()).map(|text| one_line(text, NOTED_CHARS_MAX))
    };
    let system = told(&deep_link.os).map(|os| format!(" for {os}")).unwrap_or_default();
    let install = told(&deep_link.install_url).map(|url| format!("install from {url}"));
    let parts: Vec<String> = told(&deep_link.app_uri_path).into_iter().chain(install).collect();
    let what = if parts.is_empty() { "nothing said".to_owned() } else { parts.join(", ") };
    format!("Deep link{system}: {what}")
}

/// An object of a known shape.
fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue, place: &str) -> Result<T, Reason> {
    serde_json::from_str(raw.get()).map_err(|error| {
        Reason::new(
            "unexpected_type",
            format!("{place} is not what it should be ({error}): {}", excerpt(raw.get())),
        )
    })
}

/// What people know a link by: what follows its host.
fn label(id: &str) -> Option<String> {
    id.split_once('/').map(|(_, slug)| slug.to_owned())
}

fn nameless(reason: Reason) -> Unreadable {
    Unreadable { source_id: None, label: None, reason }
}

/// A record that cannot be opened, with the id if it can be made out all the same.
fn unopened(raw: &[u8], reason: Reason) -> Unreadable {
    let source_id = record::glimpse(raw, "id");
    Unreadable { label: source_id.as_deref().and_then(label), source_id, reason }
}

#[cfg(test)]
mod tests;
