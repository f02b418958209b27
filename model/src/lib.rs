//! A model of the engine's protocol: two fetchers and two workers over one partition, any of which may stop, wake too
//! late or lose the answer to a COMMIT at any moment. The checker walks through every state that can be reached and
//! looks for one in which a record is lost, doubled or stranded. `README.md` says what is modelled and what is not.
//!
//! The model knows no SQL, no network and no time. It shares no code with the engine, or both would be wrong in the same
//! way; each action names the function it stands for.
//!
//! ```
//! use crossdock_model::{Engine, Fault};
//! use stateright::{Checker, HasDiscoveries, Model};
//!
//! let checker = Engine::with(Fault::EarlyClean)
//!     .checker()
//!     .finish_when(HasDiscoveries::AnyFailures)
//!     .spawn_bfs()
//!     .join();
//! assert!(checker.discovery("a segment is cleaned only when its records are settled").is_some());
//! ```

pub mod database;
pub mod engine;
pub mod fetcher;
pub mod properties;
pub mod source;
pub mod worker;

pub use engine::{Action, Engine, State};

/// What can be broken on purpose, to see that the properties notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A page commit does not look at the epoch.
    NoEpochCheck,
    /// The cursor is committed in a transaction of its own, before its page.
    CursorFirst,
    /// Claiming and settling a chunk do not look at its state.
    UnconditionalSettle,
    /// A page transaction whose answer was lost is sent again, as it was, instead of looked up.
    Resend,
    /// A closed segment is cleaned before its chunks are settled.
    EarlyClean,
}
