//! Writes what the `crossdock` binary owes to the crates linked into it: name, version, licence, where it comes from, and
//! the texts that must travel along. `make notices` keeps the result as THIRD_PARTY_NOTICES.md.
//!
//! Where a crate offers Apache-2.0, that is what it is used under; the text is in LICENSE-APACHE. The texts of the
//! others, and every NOTICE file, are printed, equal ones once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

const BINARY: &str = "crossdock-cli";
/// The notices are the same on whatever machine they are written.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
const APACHE: &str = "Apache-2.0";

fn main() -> Result<()> {
    let options = ["--locked", "--filter-platform", PLATFORM].map(str::to_owned);
    let metadata = MetadataCommand::new().other_options(options).exec().context("cargo metadata")?;
    std::io::stdout().write_all(notices(&linked(&metadata)?)?.as_bytes()).context("write the notices")
}

/// The foreign packages that end up in the binary, by name and version.
fn linked(metadata: &Metadata) -> Result<Vec<&Package>> {
    let resolve = metadata.resolve.as_ref().context("cargo metadata resolved nothing")?;
    let nodes: HashMap<&PackageId, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let binary = metadata
        .packages
        .iter()
        .find(|package| package.name == BINARY)
        .context("no package of the binary")?;

    let mut seen = BTreeSet::new();
    let mut open = vec![&binary.id];
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            let dependencies = &nodes.get(id).context("a dependency that was not resolved")?.deps;
            let normal = dependencies.iter().filter(|dependency| {
                dependency.dep_kinds.iter().any(|info| info.kind == DependencyKind::Normal)
            });
            open.extend(normal.map(|dependency| &dependency.pkg));
        }
    }
    let mut foreign: Vec<&Package> = metadata
        .packages
        .iter()
        .filter(|package| package.source.is_some() && seen.contains(&package.id))
        .collect();
    foreign.sort_by(|a, b| (a.name.as_str(), &a.version).cmp(&(b.name.as_str(), &b.version)));
    Ok(foreign)
}

fn notices(packages: &[&Package]) -> Result<String> {
    let mut page = String::from(
        "# Third-party notices\n\n\
         The `crossdock` binary contains the crates below. Written by `make notices`; `make ci` checks that it is current.\n\
         A crate that offers Apache-2.0 is used under it (see LICENSE-APACHE); the other texts follow the list.\n\
         The Rust standard library is linked in too, under Apache-2.0.\n\n\
         | crate | version | licence | source |\n|---|---|---|---|\n",
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let licence = package.license.as_deref().unwrap_or("see its licence file");
        let source = package.repository.as_deref().or(package.homepage.as_deref()).unwrap_or("crates.io");
        writeln!(page, "| {} | {} | {licence} | {source} |", package.name, package.version)?;
        let folder = package.manifest_path.parent().context("a manifest without a folder")?;
        for text in texts_owed(folder.as_std_path(), offers_apache(licence))? {
            texts.entry(text).or_default().push(format!("{} {}", package.name, package.version));
        }
    }
    let mut sections: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, names)| (names, text)).collect();
    sections.sort();
    for (names, text) in sections {
        write!(page, "\n## {}\n\n```text\n{text}\n```\n", names.join(", "))?;
    }
    Ok(page)
}

/// Whether the SPDX expression lets one choose Apache-2.0 alone. The slash is the old form of `OR`.
fn offers_apache(expression: &str) -> bool {
    !expression.contains(" AND ")
        && expression.replace('/', " OR ").split(" OR ").any(|licence| licence.trim() == APACHE)
}

/// The licence texts in a crate's folder that must be passed on; of a crate used under Apache-2.0 only the NOTICE.
fn texts_owed(folder: &Path, under_apache: bool) -> Result<Vec<String>> {
    let mut texts = BTreeSet::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        let licence =
            ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT"].iter().any(|word| name.starts_with(word));
        if path.is_file() && (name.starts_with("NOTICE") || (licence && !under_apache)) {
            let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            let text = plain(&text);
            if !is_apache(&text) {
                texts.insert(text);
            }
        }
    }
    Ok(texts.into_iter().collect())
}

fn is_apache(text: &str) -> bool {
    text.contains("Apache License") && text.contains("TERMS AND CONDITIONS FOR USE")
}

/// Without what differs between two copies of one text: line ends, blanks at the end of lines, fences.
fn plain(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.starts_with("```")).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{is_apache, offers_apache, plain};

    #[test]
    fn apache_is_chosen_where_it_is_offered_alone() {
        let cases = [
            ("MIT OR Apache-2.0", true),
            ("Apache-2.0", true),
            ("MIT/Apache-2.0", true),
            ("Apache-2.0 OR ISC OR MIT", true),
            ("MIT", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
            ("Apache-2.0 WITH LLVM-exception", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(offers_apache(expression), expected, "{expression}");
        }
    }

    #[test]
    fn two_copies_of_one_text_are_one() {
        assert_eq!(plain("\r\nMIT License \r\n\r\nCopyright\r\n"), plain("MIT License\n\nCopyright"));
    }

    #[test]
    fn a_mention_of_apache_is_not_its_text() {
        assert!(!is_apache("MIT; see also the Apache License"));
    }
}
