//! What is packaged, as the manifest lists it.

use std::fs;
use std::path::PathBuf;
use toml::Value;

/// Where all of this lies.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files of the .deb: where each comes from, where it goes, and its mode.
pub(crate) fn assets() -> Vec<[String; 3]> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("readable");
    let manifest: Value = toml::from_str(&manifest).expect("TOML");
    let listed = manifest["package"]["metadata"]["deb"]["assets"].as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    listed.iter().map(|asset| [text(&asset[0]), text(&asset[1]), text(&asset[2])]).collect()
}
