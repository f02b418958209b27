//! Where the tree is and what `cargo` says about it.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("e2e lies in the root of the repository").to_owned()
}

/// The packages of the workspace with their direct dependencies; asks no registry.
pub(crate) fn metadata() -> Metadata {
    MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo metadata answers for this workspace")
}

/// The names of everything that is linked into `package`, itself included, development dependencies left out.
pub(crate) fn linked_into(package: &str) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .current_dir(root())
        .args([
            "tree",
            "--offline",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--package",
            package,
        ])
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "cargo tree: {}", String::from_utf8_lossy(&tree.stderr));
    let listing = String::from_utf8(tree.stdout).expect("names of packages are text");
    listing.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}
