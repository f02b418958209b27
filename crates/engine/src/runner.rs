//! Under way.
/// Under way.
pub struct Limits;
/// Under way.
pub struct Runner;
