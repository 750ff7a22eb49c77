//! The Debian packages, as the manifest lists them.

use std::fs;
use std::path::PathBuf;
use toml::Value;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A package: its name, its dependencies, and its files. Of each file: where it comes from, where it goes, and its
/// mode.
pub(crate) type Package = (String, String, Vec<[String; 3]>);

/// All packages: tasuki first, then its variants in the manifest.
pub(crate) fn packages() -> Vec<Package> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("readable");
    let manifest: Value = toml::from_str(&manifest).expect("TOML");
    let (package, deb) = (&manifest["package"], &manifest["package"]["metadata"]["deb"]);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let files = |deb: &Value| {
        let listed = deb["assets"].as_array().expect("a list").iter();
        listed.map(|asset| [text(&asset[0]), text(&asset[1]), text(&asset[2])]).collect()
    };
    let mut all = vec![(text(&package["name"]), text(&deb["depends"]), files(deb))];
    let variants = deb["variants"].as_table().expect("a table").values();
    all.extend(variants.map(|variant| (text(&variant["name"]), text(&variant["depends"]), files(variant))));
    all
}

/// The files of tasuki's own package.
pub(crate) fn assets() -> Vec<[String; 3]> {
    packages().remove(0).2
}
