//! The tidiness of the tree: what no compiler and no linter looks at.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace;

/// Longer files hold more than one concept.
const LINES_MAX: usize = 700;
/// Raw data of benchmarks may be large and is not read by people.
const TEXT_BYTES_MAX: u64 = 2 * 1024 * 1024;
const NOT_OURS: &[&str] = &[".git", "node_modules", ".venv", "__pycache__"];

/// Folders of the machine on which something was written, at the start of a path. Written in two halves, because this
/// file is searched too.
const MACHINE_FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];
/// Unfinished work and tests that do not run.
const UNFINISHED: &[&str] = &[concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];
/// A test that sleeps is slow when it passes and wrong when the machine is busy: wait for what is meant.
const SLEEPS: &[&str] = &[concat!("thread::", "sleep"), concat!("time::", "sleep")];

struct TextFile {
    /// Relative to the root, with `/`.
    path: String,
    text: String,
}

impl TextFile {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn is_test(&self) -> bool {
        self.is_rust()
            && (self.path.split('/').any(|part| part == "tests") || self.path.ends_with("/tests.rs"))
    }

    fn findings(&self, needles: &[&str], matches: fn(&str, &str) -> bool) -> Vec<String> {
        let lines = self.text.lines().enumerate();
        lines
            .filter(|(_, line)| needles.iter().any(|needle| matches(line, needle)))
            .map(|(number, line)| format!("{}:{}: {}", self.path, number + 1, line.trim()))
            .collect()
    }
}

fn contains(line: &str, needle: &str) -> bool {
    line.contains(needle)
}

/// Whether `line` has a path that begins with `folder`; `https://example.com/…` with the same word in it has none.
fn has_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || "/.-_~%}".contains(c)))
    })
}

fn visit(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .expect("the tree can be read")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            // Build folders carry this tag, whatever they are called.
            if !NOT_OURS.contains(&name) && !path.join("CACHEDIR.TAG").exists() && name != "target" {
                visit(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

/// Every text of the tree.
fn texts() -> Vec<TextFile> {
    let root = workspace::root();
    let mut paths = Vec::new();
    visit(&root, &mut paths);
    let small =
        paths.into_iter().filter(|path| fs::metadata(path).is_ok_and(|file| file.len() <= TEXT_BYTES_MAX));
    let texts: Vec<TextFile> = small
        .filter_map(|path| {
            let text = String::from_utf8(fs::read(&path).ok()?).ok()?;
            let relative = path.strip_prefix(&root).expect("found below the root");
            Some(TextFile { path: relative.to_string_lossy().into_owned(), text })
        })
        .collect();
    assert!(texts.iter().any(|file| file.path == "Cargo.toml"), "the walk began at the root");
    assert!(texts.iter().any(|file| file.path == "e2e/tests/e2e/tidy.rs"), "the walk went down");
    texts
}

fn assert_nothing(found: &[String], why: &str) {
    assert!(found.is_empty(), "{why}:\n{}", found.join("\n"));
}

#[test]
fn no_file_names_a_folder_of_the_machine_it_was_written_on() {
    let found: Vec<String> =
        texts().iter().flat_map(|file| file.findings(MACHINE_FOLDERS, has_path)).collect();
    assert_nothing(&found, "these paths exist on one machine only");
}

#[test]
fn nothing_is_left_unfinished_and_no_test_is_ignored() {
    let texts = texts();
    let found: Vec<String> = texts
        .iter()
        .filter(|file| file.is_rust())
        .flat_map(|file| file.findings(UNFINISHED, contains))
        .collect();
    assert_nothing(&found, "finish it, or assert what happens today and say why");
}

#[test]
fn no_test_sleeps() {
    let texts = texts();
    let found: Vec<String> =
        texts.iter().filter(|file| file.is_test()).flat_map(|file| file.findings(SLEEPS, contains)).collect();
    assert_nothing(&found, "wait for a signal or move the test clock");
}

#[test]
fn every_rust_file_is_short_enough_to_hold_one_concept() {
    let texts = texts();
    let lengths =
        texts.iter().filter(|file| file.is_rust()).map(|file| (&file.path, file.text.lines().count()));
    let long: Vec<String> = lengths
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect();
    assert_nothing(&long, "split by concept");
}

#[test]
fn every_crate_opens_with_what_it_is_for() {
    let texts = texts();
    let mut libraries = texts.iter().filter(|file| file.path.ends_with("src/lib.rs")).peekable();
    assert!(libraries.peek().is_some(), "the tree has libraries");
    let mute: Vec<String> =
        libraries.filter(|file| !file.text.starts_with("//! ")).map(|file| file.path.clone()).collect();
    assert_nothing(&mute, "begin with `//!`: what the crate is for and what it refuses to know");
}

/// The functions by which a file is used, in order: free ones that are visible outside, and methods. A private free
/// function is a dialect's own helper.
fn interface(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines()
        .filter(|line| !line.starts_with("fn ") && !line.starts_with("async fn "))
        .filter_map(function)
        .collect()
}

/// The name of the function whose signature begins in `line`.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let modifiers = ["pub", "pub(crate)", "pub(super)", "async", "const"];
    let only_modifiers =
        before.split_whitespace().all(|word| modifiers.contains(&word) || word.starts_with("pub("));
    let name = after.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    (only_modifiers && !name.is_empty()).then_some(name)
}

/// The other dialect's path of a store file: `…/store/sqlite/page.rs` has `…/store/postgres/page.rs`.
fn twin_path(path: &str) -> Option<String> {
    for (from, to) in [("/store/sqlite", "/store/postgres"), ("/store/postgres", "/store/sqlite")] {
        if let Some((before, after)) = path.split_once(from)
            && (after.starts_with('/') || after == ".rs")
        {
            return Some(format!("{before}{to}{after}"));
        }
    }
    None
}

fn twin_complaint(file: &TextFile, texts: &[TextFile]) -> Option<String> {
    let twin = twin_path(&file.path)?;
    let Some(other) = texts.iter().find(|other| other.path == twin) else {
        return Some(format!("{} has no twin {twin}", file.path));
    };
    let (here, there) = (interface(&file.text), interface(&other.text));
    let at = (0..here.len().max(there.len())).find(|at| here.get(*at) != there.get(*at))?;
    let name = |names: &[&str]| names.get(at).map_or("nothing more".to_owned(), |name| format!("`{name}`"));
    Some(format!("{}: function {} is {}, in {twin} {}", file.path, at + 1, name(&here), name(&there)))
}

#[test]
fn sqlite_and_postgres_stores_are_twins() {
    let texts = texts();
    let stores = texts.iter().filter(|file| file.is_rust() && !file.is_test());
    let found: Vec<String> = stores.filter_map(|file| twin_complaint(file, &texts)).collect();
    assert_nothing(
        &found,
        "same function names in the same order, so that comparing them shows the difference",
    );
}

#[test]
fn a_store_without_its_twin_and_a_function_out_of_order_are_noticed() {
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let sqlite = file(
        "crates/a/src/store/sqlite/page.rs",
        "pub(crate) async fn take() {}\nfn helper() {}\npub fn put() {}\n",
    );
    let cases = [
        ("pub async fn take() {}\nimpl A {\n    fn inner() {}\n}\n", Some("function 2 is `put`, in")),
        ("pub fn put() {}\npub fn take() {}\n", Some("function 1 is `take`, in")),
        ("pub fn take() {}\n", Some("function 2 is `put`, in")),
        ("// fn other()\npub fn take() {}\npub fn put() {}\n#[cfg(test)]\npub fn extra() {}\n", None),
    ];
    for (text, expected) in cases {
        let postgres = file("crates/a/src/store/postgres/page.rs", text);
        let complaint = twin_complaint(&sqlite, &[postgres]);
        assert_eq!(complaint.is_some(), expected.is_some(), "{complaint:?} for {text}");
        assert!(complaint.unwrap_or_default().contains(expected.unwrap_or_default()), "for {text}");
    }
    assert!(twin_complaint(&sqlite, &[]).is_some_and(|complaint| complaint.contains("has no twin")));
}

#[test]
fn a_path_of_the_machine_is_told_from_a_web_address() {
    let folder = MACHINE_FOLDERS[0];
    let cases = [
        ("cd {}x", true),
        ("\"{}x\"", true),
        ("{}x", true),
        ("https://a.example{}x", false),
        ("a{}x", false),
    ];
    for (line, expected) in cases {
        assert_eq!(has_path(&line.replace("{}", folder), folder), expected, "{line}");
    }
}
