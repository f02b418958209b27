//! What the room promises, on both databases.

mod batch;
mod changes;
mod clicks;
mod domains;
mod links;
mod listing;
mod schema;
mod tokens;
mod world;
