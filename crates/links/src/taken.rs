//! Which slugs are taken.

use std::collections::HashMap;

use db::{Conn, Id};

use crate::store::{self, postgres, sqlite};
use crate::{Place, Result, Slug};

/// A place that a live link has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The place as it was asked for.
    pub place: Place,
    /// The slug as the link has it; it differs in case at most.
    pub slug: Slug,
    /// The link.
    pub link_id: Id,
}

/// Which of these places are taken, as each domain compares slugs.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) for an unknown domain.
pub async fn taken(conn: Conn<'_>, places: &[Place]) -> Result<Vec<Taken>> {
    db::dispatch!(conn, taken_places(places))
}

/// Twin to both databases' `taken_places`.
pub(crate) fn match_taken(
    modes: &store::Modes,
    places: &[Place],
    rows: Vec<store::rows::TakenRow>,
) -> Result<Vec<Taken>> {
    let by_key: HashMap<(Id, String), (String, Id)> =
        rows.into_iter().map(|row| ((row.domain_id, row.folded), (row.slug, row.link_id))).collect();
    let mut taken = Vec::new();
    for place in places {
        if let Some((slug, link_id)) = by_key.get(&(place.domain_id, store::key(modes, place)?)) {
            taken.push(Taken { place: place.clone(), slug: Slug::stored(slug.clone()), link_id: *link_id });
        }
    }
    Ok(taken)
}
