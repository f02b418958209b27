//! The room's statements: twin modules with the same functions, each in its database's own dialect.

mod json;
pub(crate) mod postgres;
pub(crate) mod rows;
pub(crate) mod sqlite;

use std::collections::{BTreeSet, HashMap};

use db::Id;

use crate::{CaseMode, Error, Place, Result};

/// The case modes of some domains.
pub(crate) type Modes = HashMap<Id, CaseMode>;

/// What each place's domain compares.
pub(crate) fn key(modes: &Modes, place: &Place) -> Result<String> {
    let mode = modes.get(&place.domain_id).ok_or(Error::NotFound("domain"))?;
    Ok(mode.key(&place.slug).into_owned())
}

/// Each domain once, in the order in which rows are locked.
pub(crate) fn domains_of<'p>(places: impl IntoIterator<Item = &'p Place>) -> Vec<Id> {
    places.into_iter().map(|place| place.domain_id).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The room's migrations.
pub const ROOM: db::Room = db::room!(
    "links",
    &[
        db::Migration {
            version: 1,
            name: "links",
            sqlite: include_str!("../../migrations/0001_links.sqlite.sql"),
            postgres: include_str!("../../migrations/0001_links.postgres.sql"),
        },
        db::Migration {
            version: 2,
            name: "click blocks set aside",
            sqlite: include_str!("../../migrations/0002_click_blocks_set_aside.sqlite.sql"),
            postgres: include_str!("../../migrations/0002_click_blocks_set_aside.postgres.sql"),
        },
        db::Migration {
            version: 3,
            name: "link befores",
            sqlite: include_str!("../../migrations/0003_link_befores.sqlite.sql"),
            postgres: include_str!("../../migrations/0003_link_befores.postgres.sql"),
        },
    ]
);
