//! The page of guarantees names a test for each condition, and the test is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Names of tests have so many letters at least; other code in the page's last column is shorter or has a dot or a space.
const NAME_MIN: usize = 15;
/// The page has a row for each condition; fewer mean that the table is not read as it is written.
const ROWS_MIN: usize = 79;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
}

#[test]
fn every_test_that_the_guarantees_name_exists() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = std::fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---") && !line.starts_with("| no."))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() >= ROWS_MIN, "{} rows were found", rows.len());
    assert!(rows.iter().all(|row| row.len() == 5), "{:?}", rows.iter().find(|row| row.len() != 5));
    let mut files = Vec::new();
    for room in ["crates", "e2e", "model"] {
        sources(&root.join(room), &mut files);
    }
    let texts: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    // A name in a comment is no test.
    let lines =
        texts.iter().flat_map(|text| text.lines()).filter(|line| !line.trim_start().starts_with("//"));
    let known: BTreeSet<&str> = lines.flat_map(words).collect();
    for row in &rows {
        let named: Vec<&str> = words(row[4]).filter(|word| word.len() >= NAME_MIN).collect();
        assert!(
            !named.is_empty() || row[2].starts_with("cannot occur"),
            "{} has neither a test nor a reason",
            row[0]
        );
        for name in named {
            assert!(known.contains(name), "{}: there is no test {name}", row[0]);
        }
    }
    // Numbers come once.
    let numbers: BTreeSet<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(numbers.len(), rows.len());
}
