//! The arrows between the rooms: who may know whom.
//!
//! An arrow that is not in the table is refused, and the message says what the room refuses to know. An arrow in the
//! table that nobody uses is no fault. Development dependencies may follow the arrows as far as they lead and point to
//! the simulators, for a test may set up what the code itself must not know.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, Package};

use crate::workspace;

const PREFIX: &str = "crossdock-";
const SIMULATORS: &str = "simulators";

struct Room {
    name: &'static str,
    /// What the room must stay ignorant of, and what that wins.
    refuses: &'static str,
    /// Whom it may know, and why.
    arrows: &'static [(&'static str, &'static str)],
}

const ROOMS: &[Room] = &[
    Room {
        name: "db",
        refuses: "db opens and migrates databases and owns no table; a table it knew would be shared by all rooms",
        arrows: &[],
    },
    Room {
        name: "upstream",
        refuses: "upstream is a polite HTTP client and nothing else; what an answer means is the vendors' affair",
        arrows: &[],
    },
    Room {
        name: "simulators",
        refuses: "simulators share no code with what they test, or both would be wrong in the same way",
        arrows: &[],
    },
    Room {
        name: "engine",
        refuses: "the engine knows no vendor, no link, no ledger and no HTTP, so that its promises hold for any source and sink",
        arrows: &[("db", "checkpoints, staged records and manifests are rows on either database")],
    },
    Room {
        name: "links",
        refuses: "links is the domain of short links and must work without an engine, a vendor or a web server",
        arrows: &[("db", "links, slugs and domains are rows on either database")],
    },
    Room {
        name: "imports",
        refuses: "imports says what bringing a link over means for every vendor, so it knows none of them, and no HTTP",
        arrows: &[
            ("links", "what comes over becomes links"),
            ("engine", "the link sink is one of the engine's sinks"),
            ("db", "an import's parameters are committed with the engine's rows"),
        ],
    },
    Room {
        name: "vendors",
        refuses: "a vendor reads its API and says what it sent; writing links is the affair of imports",
        arrows: &[
            ("imports", "what a vendor sends becomes an incoming link"),
            ("upstream", "every request to a vendor is polite and bounded"),
            ("engine", "a vendor is one of the engine's sources"),
        ],
    },
    Room {
        name: "ledger",
        refuses: "the ledger moves records declared in a folder and knows no link and no vendor",
        arrows: &[
            ("engine", "a declared migration is a source and a sink of the engine"),
            ("upstream", "every request to an export API is polite and bounded"),
            ("db", "the target is a database"),
        ],
    },
    Room {
        name: "http",
        refuses: "http turns requests into operations and errors into answers; it starts no vendor, the binary hands it one",
        arrows: &[
            ("imports", "imports are started, shown and stopped over HTTP"),
            ("links", "redirects and the REST API serve links"),
            ("engine", "a job's progress and metrics are the engine's"),
            ("db", "readiness asks the database"),
        ],
    },
    Room {
        name: "cli",
        refuses: "nothing: the binary is the only place where concrete parts meet",
        arrows: &[
            ("db", "the binary opens the database"),
            ("upstream", "the binary builds the client"),
            ("simulators", "demo and simulate serve a simulated vendor"),
            ("engine", "the binary runs jobs"),
            ("links", "the binary keeps domains and tokens"),
            ("imports", "the binary starts imports"),
            ("vendors", "the binary chooses the vendor"),
            ("ledger", "the binary runs declared migrations"),
            ("http", "the binary serves"),
        ],
    },
];

/// What speaks HTTP. Linked into the engine or the links, it would tie their promises to a transport.
const HTTP_CRATES: &[&str] = &["axum", "reqwest", "hyper", "hyper-util", "tower", "crossdock-upstream"];

fn room(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

impl Room {
    fn may_know(&self, other: &str) -> bool {
        self.arrows.iter().any(|(to, _)| *to == other)
    }

    /// Everything the arrows lead to.
    fn reach(&self) -> BTreeSet<&'static str> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&'static str> = self.arrows.iter().map(|(to, _)| *to).collect();
        while let Some(next) = open.pop() {
            if reached.insert(next) {
                open.extend(room(next).into_iter().flat_map(|room| room.arrows.iter().map(|(to, _)| *to)));
            }
        }
        reached
    }

    fn may_know_in_tests(&self, other: &str) -> bool {
        let simulators_allowed = self.name != "db" && self.name != SIMULATORS;
        other == self.name || self.reach().contains(other) || (other == SIMULATORS && simulators_allowed)
    }

    /// The complaint about an arrow from here to `other`, if it is not allowed.
    fn complaint(&self, other: &str, kind: DependencyKind) -> Option<String> {
        let allowed = match kind {
            DependencyKind::Development => self.may_know_in_tests(other),
            _ => self.may_know(other),
        };
        (!allowed).then(|| {
            let drawn: Vec<String> = self.arrows.iter().map(|(to, why)| format!("  → {to}: {why}")).collect();
            format!(
                "{from} → {other} ({kind}) is not an arrow of this house: {refuses}.\n{from} may know:\n{drawn}\n",
                from = self.name,
                refuses = self.refuses,
                drawn = if drawn.is_empty() { "  nobody".to_owned() } else { drawn.join("\n") },
            )
        })
    }
}

fn complaints(package: &Package) -> Vec<String> {
    let name = package.name.as_str().strip_prefix(PREFIX).expect("rooms are called crossdock-*");
    let Some(from) = room(name) else {
        return vec![format!(
            "{name} is a room without a place in the table of arrows: draw it there, with a reason\n"
        )];
    };
    let ours = package.dependencies.iter().filter_map(|dep| Some((dep.name.strip_prefix(PREFIX)?, dep.kind)));
    ours.filter_map(|(other, kind)| from.complaint(other, kind)).collect()
}

#[test]
fn rooms_know_only_whom_the_arrows_point_to() {
    let metadata = workspace::metadata();
    let crates = metadata.workspace_root.join("crates");
    let rooms: Vec<&Package> =
        metadata.packages.iter().filter(|package| package.manifest_path.starts_with(&crates)).collect();
    assert!(rooms.len() >= 9, "cargo metadata names the rooms, not only {}", rooms.len());

    let complaints: Vec<String> = rooms.iter().flat_map(|package| complaints(package)).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn neither_the_engine_nor_the_links_are_linked_with_http() {
    for name in ["crossdock-engine", "crossdock-links", "crossdock-imports", "crossdock-db"] {
        let linked = workspace::linked_into(name);
        assert!(
            linked.iter().any(|package| package == "sqlx"),
            "cargo tree lists what {name} links: {linked:?}"
        );
        let speakers: Vec<&String> =
            linked.iter().filter(|package| HTTP_CRATES.contains(&package.as_str())).collect();
        assert!(
            speakers.is_empty(),
            "{name} is linked with {speakers:?}: its promises must hold whatever the transport, and a status code must \
             not become one of its errors; speak HTTP in upstream (as a client) or in http (as a server)"
        );
    }
}

#[test]
fn only_the_binary_is_linked_with_the_simulators() {
    for room in ROOMS.iter().filter(|room| !["cli", SIMULATORS].contains(&room.name)) {
        assert!(!room.may_know(SIMULATORS), "{} would ship with the simulators", room.name);
    }
}

#[test]
fn an_arrow_that_is_not_drawn_is_refused_with_its_reason() {
    let cases = [
        ("engine", "links", DependencyKind::Normal),
        ("engine", "upstream", DependencyKind::Development),
        ("links", "engine", DependencyKind::Normal),
        ("http", "vendors", DependencyKind::Normal),
        ("vendors", "simulators", DependencyKind::Normal),
        ("vendors", "db", DependencyKind::Build),
        ("imports", "vendors", DependencyKind::Development),
        ("simulators", "upstream", DependencyKind::Development),
    ];
    for (from, to, kind) in cases {
        let from = room(from).expect("the table has the room");
        let complaint =
            from.complaint(to, kind).unwrap_or_else(|| panic!("{} → {to} was let through", from.name));
        assert!(complaint.contains(from.refuses), "{complaint}");
    }
}

#[test]
fn tests_may_follow_the_arrows_further_and_use_the_simulators() {
    for (from, to) in [("vendors", "links"), ("vendors", "db"), ("vendors", "simulators"), ("http", "db")] {
        let from = room(from).expect("the table has the room");
        assert_eq!(from.complaint(to, DependencyKind::Development), None);
    }
}
