//! What only the whole shows. One binary, so that it links once; each module is a subject.

mod arrows;
mod tidy;
mod workspace;
