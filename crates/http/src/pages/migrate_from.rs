//! `GET /migrate-from/{vendor}`: for those who think of moving, before they have an account.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::layout::{Html, page};
use crate::problem::Problem;

/// What comes over from Bitly, and as what.
const BITLY_COMES: [(&str, &str); 9] = [
    ("Every link, archived ones too", "Archived links redirect as before and stay marked as archived."),
    (
        "Every slug",
        "The generated one and every custom back-half, on your own domain, in its exact spelling.",
    ),
    ("Destinations", "Byte for byte, queries and fragments included."),
    ("Titles and tags", "In any script. Every link also gets the tag imported:bitly."),
    ("Creation dates", "To the second."),
    ("Expiry dates", "An expired link stays expired and keeps its slug."),
    ("Routing by country and device", "Kept with the link where it can be expressed; the rest is listed."),
    ("App links", "The store addresses for iOS and Android."),
    ("The vendor's own record", "Kept with each link, so that nothing of it is lost for later."),
];

/// What does not.
const BITLY_STAYS: [(&str, &str); 7] = [
    (
        "Click history",
        "Bitly gives it out link by link only. Export reports you need before you leave; counting starts anew.",
    ),
    (
        "QR code designs",
        "Printed codes go on working, because they hold the short link; their designs stay at Bitly.",
    ),
    ("Campaigns, channels, launchpads", "Groupings of Bitly's own. Tags come over and can stand in."),
    (
        "Links on bit.ly itself",
        "The domain is Bitly's, so their public address changes: map them to a domain of yours, or leave them out.",
    ),
    ("Deleted links", "They are reported, not brought back."),
    ("Users, groups and permissions", "People are invited anew."),
    ("The token", "It is used in memory while the import runs and never stored."),
];

pub(crate) async fn handle(Path(vendor): Path<String>) -> Response {
    match vendor.as_str() {
        "bitly" => Html(page("Move from Bitly", None, &bitly())).into_response(),
        _ => Problem::not_found().for_people().into_response(),
    }
}

fn bitly() -> Markup {
    html! {
        h1 { "Move from Bitly" }
        p { "Every link of a group comes to your own server and answers there under its old slug. The import can be "
            "paused or interrupted at any moment and goes on where it was; at its end every link is accounted for." }
        h2 { "What comes over" }
        div.card { (table(&BITLY_COMES)) }
        h2 { "What does not" }
        div.card { (table(&BITLY_STAYS)) }
        h2 { "Before you start" }
        p { "Keep the domain: point its DNS at the new server when the import is done, and the printed, posted and "
            "mailed links go on working. A Bitly plan allows a number of API calls a month; 100 links take one call, and "
            "the import says beforehand how many it needs." }
    }
}

fn table(rows: &[(&str, &str)]) -> Markup {
    html! {
        table {
            @for (what, how) in rows { tr { th { (what) } td.text { (how) } } }
        }
    }
}
