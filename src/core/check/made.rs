//! Folders that builds and tools make: no document needs to account for their files.

/// Folders that a build or a tool makes.
const MADE: [&str; 21] = [
    "node_modules",
    "target",
    "dist",
    "build",
    "out",
    "output",
    "coverage",
    "__pycache__",
    "venv",
    ".venv",
    "tmp",
    "temp",
    ".cache",
    "cache",
    ".next",
    ".nuxt",
    ".turbo",
    ".gradle",
    "logs",
    "log",
    "obj",
];

/// Whether a part of a path is the name of such a folder, or one of `others`.
pub(super) fn is_tool_folder(part: &str, others: &[&str]) -> bool {
    MADE.contains(&part) || others.contains(&part)
}
