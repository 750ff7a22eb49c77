//! What is packaged, as the manifest lists it.

use std::fs;
use std::path::PathBuf;
use toml::Value;

/// Where all of this lies.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A package: its name, what it depends on, and its files: where each comes from, where it goes, and its mode.
pub(crate) type Package = (String, String, Vec<[String; 3]>);

/// The packages that are made: tasuki, then those beside it.
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
