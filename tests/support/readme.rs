//! Reads the README and the guide, so that tests can run the recipes that others paste.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The README.
pub(crate) fn readme() -> String {
    read(&root().join("README.md"))
}

/// One chapter of the guide, by its topic.
pub(crate) fn chapter(topic: &str) -> String {
    read(&root().join(format!("data/guide/{topic}.md")))
}

/// The blocks of one language in a section of the README ("Use it") or in a chapter of the guide ("spool").
pub(crate) fn blocks(place: &str, language: &str) -> Vec<String> {
    let readme = readme();
    let text = match readme.split(&format!("\n## {place}\n")).nth(1) {
        Some(rest) => rest.split("\n## ").next().unwrap_or_default().to_owned(),
        None => chapter(place),
    };
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(own) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            if own == language {
                blocks.push(block.join("\n") + "\n");
            }
        }
    }
    blocks
}

/// Whether a recipe in Python can run here.
pub(crate) fn has_python() -> bool {
    let out = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    out.is_ok_and(|status| status.success())
}
