//! What is packaged: each file of the .deb is there or is made by `scripts/deb`, and the parts that belong together are
//! all in it. The package itself is built by that script, for it takes a release build.

use super::support::fake_sidecar::FakeHome;
use super::support::package::{assets, packages, root};
use super::support::said::err;
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
    // What the script makes of each program: `tells PROGRAM NAME FOLDER`.
    let told = |folder: &str, name: &str| script.contains(&format!("tells target/release/{name} {name} {folder}\n"));
    for [from, to, mode] in packages().into_iter().flat_map(|(_, _, files)| files) {
        if let Some(built) = from.strip_prefix("target/release/") {
            assert!(script.contains(&format!("tells {from} {built} ")), "scripts/deb does not build {from}");
            continue;
        }
        if from.starts_with("target/") {
            let (folder, name) = from.rsplit_once('/').expect("a folder");
            let folder = folder.trim_end_matches("/man");
            let of = if folder.ends_with("fleet") { "tasuki-fleet" } else { "tasuki" };
            assert!(told(folder, of), "scripts/deb does not make {from}");
            let ends = [format!("{of}.bash"), format!("_{of}"), format!("{of}.fish")];
            assert!(ends.iter().any(|end| name == end) || from.contains("/man/"), "scripts/deb does not make {from}");
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
fn the_bridge_is_a_package_of_its_own_and_the_hint_names_it() {
    let all = packages();
    let [_, (name, depends, files)] = all.as_slice() else { panic!("{all:?}") };
    assert!(depends.split(", ").any(|needed| needed == "tasuki"), "{depends}");
    let goes = |from: &str| files.iter().find(|file| file[0] == from).map(|file| file[1].as_str());
    assert_eq!(goes("target/release/tasuki-fleet"), Some("usr/bin/"));
    assert_eq!(goes("packaging/systemd/tasuki-fleet.service"), Some("usr/lib/systemd/user/"));
    assert!(read("packaging/systemd/tasuki-fleet.service").contains("\nExecStart=/usr/bin/tasuki-fleet run\n"));
    for file in ["tasuki-fleet.bash", "_tasuki-fleet", "tasuki-fleet.fish", "man/*.1"] {
        assert!(goes(&format!("target/deb/fleet/{file}")).is_some(), "{file}");
    }
    // No file is in both packages: dpkg would refuse the second one. The page of `tasuki fleet` is the bridge's.
    let places: BTreeSet<(String, String)> = assets().into_iter().map(|[from, to, _]| (to, base(&from))).collect();
    assert!(!files.iter().any(|[from, to, _]| places.contains(&(to.clone(), base(from))) && !from.contains('*')));
    let (home, pages) = (FakeHome::new(), tempfile::tempdir().expect("a folder"));
    home.run(&["man", "--dir", &pages.path().display().to_string()]);
    assert!(pages.path().join("tasuki-handoff.1").exists() && !pages.path().join("tasuki-fleet.1").exists());
    // In a folder of its own, with nothing in its PATH, tasuki finds no bridge.
    let alone = pages.path().join("tasuki");
    let built = env!("CARGO_BIN_EXE_tasuki");
    fs::hard_link(built, &alone).or_else(|_| fs::copy(built, &alone).map(drop)).expect("it is there");
    let output = std::process::Command::new(&alone).args(["fleet", "hosts"]).env("PATH", "").output();
    let said = err(&output.expect("it runs"));
    assert!(said.contains(&format!("Debian package {name},")), "{said}");
}

fn base(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

#[test]
fn tpm_finds_the_plugin_at_the_top() {
    let link = root().join("tasuki.tmux");
    assert_eq!(fs::read_link(&link).expect("a link"), Path::new("packaging/tmux/tasuki.tmux"));
    let mode = fs::metadata(&link).expect("a file behind it").permissions().mode();
    assert_ne!(mode & 0o111, 0, "tpm runs it");
}
