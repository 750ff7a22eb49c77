//! What is packaged: each file of the .deb is there or is made by `scripts/deb`, and the parts that belong together are
//! all in it. The package itself is built by that script, for it takes a release build.

use super::support::package::{assets, root};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    entries.map(|entry| format!("{folder}/{}", entry.expect("an entry").file_name().to_string_lossy())).collect()
}

#[test]
fn every_file_of_the_package_is_there_or_is_made_for_it() {
    let script = read("scripts/deb");
    for [from, to, mode] in assets() {
        if let Some(made) = from.strip_prefix("target/") {
            let made = made.trim_end_matches("/*.1").trim_end_matches("/*.7");
            assert!(script.contains(&format!("target/{made}")), "scripts/deb does not make {from}");
            continue;
        }
        let (folder, pattern) = from.rsplit_once('/').unwrap_or((".", &from));
        let found: Vec<PathBuf> = match pattern.strip_prefix('*') {
            Some(end) => {
                names(folder).into_iter().filter(|name| name.ends_with(end)).map(|name| root().join(name)).collect()
            }
            None => vec![root().join(&from)],
        };
        assert!(!found.is_empty(), "{from}: nothing is there");
        for path in found {
            let meta = fs::metadata(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let runs = meta.permissions().mode() & 0o111 != 0;
            assert_eq!(mode, if runs { "755" } else { "644" }, "{}", path.display());
        }
        assert!(to.starts_with("usr/"), "{to}");
    }
}

#[test]
fn what_belongs_together_is_in_the_package() {
    let assets = assets();
    let goes = |from: &str| assets.iter().find(|asset| asset[0] == from).map(|asset| asset[1].as_str());
    assert_eq!(goes("packaging/systemd/tasuki.service"), Some("usr/lib/systemd/user/"));
    // Whatever the service installs is made from the very file that is packaged, and starts what is packaged.
    assert_eq!(tasuki::service::SIDECAR.unit_template, read("packaging/systemd/tasuki.service"));
    assert!(tasuki::service::SIDECAR.unit_template.contains("\nExecStart=/usr/bin/tasuki run\n"));
    assert_eq!(goes("target/release/tasuki"), Some("usr/bin/"));
    for file in names("packaging/tmux") {
        assert_eq!(goes(&file), Some("usr/share/tasuki/tmux/"), "{file}");
    }
    for file in ["tasuki.bash", "_tasuki", "tasuki.fish", "man/*.1", "man/*.7"] {
        assert!(goes(&format!("target/deb/{file}")).is_some(), "{file}");
    }
    assert_eq!(goes("packaging/schemas/*.json"), Some("usr/share/tasuki/schemas/"));
}

#[test]
fn tpm_finds_the_plugin_at_the_top() {
    let link = root().join("tasuki.tmux");
    assert_eq!(fs::read_link(&link).expect("a link"), Path::new("packaging/tmux/tasuki.tmux"));
    let mode = fs::metadata(&link).expect("a file behind it").permissions().mode();
    assert_ne!(mode & 0o111, 0, "tpm runs it");
}
