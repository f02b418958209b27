//! What only the whole shows. One binary, so that it links once; each module is a subject.

mod arrows;
mod backup;
mod demo;
mod ground;
mod import;
mod job;
mod ledger;
mod serve;
mod tidy;
mod workspace;
