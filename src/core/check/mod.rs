//! Checks a document against its instruction, the repository and the other facts. [`claims()`] lists the commits,
//! branches and paths that the document names; the git adapter looks them up. [`faults`] runs the checks and returns
//! what is wrong. Each check has a file of its own.
//!
//! Also here: [`drift()`] compares a repository with its earlier facts, [`handed_down_rules`] collects the rules that a
//! chain of documents passes on, and [`markdown`] shows facts to people and to the successor. All functions are pure.

mod asked;
mod branches;
mod changed;
mod checkpoint;
mod claims;
mod commits;
mod copy;
mod drift;
mod extract;
mod facts_text;
mod front_matter;
mod judge;
mod lines;
mod made;
mod next_step;
mod paths;
mod places;
mod report;
mod repository;
mod rules;
mod sections;
mod size;
mod spans;
mod status;
mod status_claims;
#[cfg(test)]
mod testing;
mod whole;

pub use claims::{Claims, CommitLookup, FoundSecret, Lookups, PathLookup};
pub use drift::drift;
pub use extract::claims;
pub use facts_text::markdown;
pub use front_matter::{front_matter_value, without_front_matter};
pub use judge::{CheckInput, faults};
pub use rules::handed_down_rules;
