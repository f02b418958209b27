//! Under way.
/// The engine's tables.
pub const ROOM: db::Room = db::room!("engine", &[]);
/// Under way.
#[derive(Clone)]
pub struct Store;
