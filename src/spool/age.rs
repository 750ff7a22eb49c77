//! Removes files that are 7 days old: the views of ended agents and finished handoffs, and the files of texts that were
//! too long to type. Of each of the two kinds of views, it also removes all but the newest 20,000. Views of work items
//! are never removed. The store keeps the rows, and the sidecar writes a view again on request.
//!
//! Each call looks at a few files. Ages are counted by [`BelievedClock`], which gives the time that the wall clock
//! showed 10 minutes ago, or its present time if that is earlier. So a jump forward that is corrected within 10 minutes
//! removes nothing.

use super::dirs::{SpoolDir, SpoolDirs};
use crate::core::id::{AgentId, DeliveryId, HandoffId, Slug};
use crate::core::time::{BelievedClock, Now};
use crate::files;
use nix::dir::OwningIter;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

/// How long a view of history, or the file of a text, is kept, in milliseconds.
pub const KEPT_MS: i64 = 7 * 24 * 3_600_000;
/// How many views of history of each kind are kept at most.
pub const MOST_VIEWS: usize = 20_000;

/// A view, or the file of a text that was too long to type, which is removed when it is old enough and not in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgingCandidate<'a> {
    Agent(AgentId),
    Handoff(HandoffId),
    /// The file of a text, by its name.
    Text(&'a str),
}

#[derive(Default)]
pub(super) struct Ager {
    clock: BelievedClock,
    pass: Option<Pass>,
    /// For the views of agents and for those of handoffs: if the last pass kept [`MOST_VIEWS`], the change time of the
    /// oldest of them; otherwise `i64::MIN`. Older views are removed.
    oldest_kept_ns: [i64; 2],
}

impl std::fmt::Debug for Ager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ager").field("oldest_kept_ns", &self.oldest_kept_ns).finish_non_exhaustive()
    }
}

enum Pass {
    /// Looks through the views of agents (0) or of handoffs (1). `newest`: change times of the views that it keeps.
    Views { kind: usize, listing: OwningIter, newest: BinaryHeap<Reverse<i64>> },
    /// Looks through the personas' folders, and through the texts of the present one.
    Texts { personas: OwningIter, of: Option<(OwnedFd, OwningIter)> },
}

impl Ager {
    /// Looks at the next `max` files. Removes those that are old, unless `is_in_use` says that they are needed. Returns
    /// how many it removed.
    pub(super) fn remove_old_views_and_texts(
        &mut self,
        dirs: &SpoolDirs,
        max: usize,
        now: &Now,
        is_in_use: impl Fn(AgingCandidate<'_>) -> bool,
    ) -> usize {
        let Some(wall_ms) = self.clock.wall_ms(now) else { return 0 };
        let limit_ns = wall_ms.saturating_sub(KEPT_MS).saturating_mul(1_000_000);
        let mut removed = 0;
        let mut pass = self.pass.take().or_else(|| views_pass(dirs, 0));
        for _ in 0..max {
            pass = match pass {
                None => break,
                Some(Pass::Views { kind, listing, newest }) => {
                    let (next, was_removed) = self.age_view(dirs, kind, listing, newest, limit_ns, &is_in_use);
                    removed += was_removed;
                    next
                }
                Some(Pass::Texts { personas, of }) => {
                    let (next, was_removed) = age_text(dirs, personas, of, limit_ns, &is_in_use);
                    removed += was_removed;
                    next
                }
            };
        }
        self.pass = pass;
        removed
    }

    /// Whether the last pass has ended and the next one has not begun.
    pub(super) fn is_aging_done(&self) -> bool {
        self.pass.is_none()
    }

    /// Looks at one view; at the end of its folder, begins with the next one.
    fn age_view(
        &mut self,
        dirs: &SpoolDirs,
        kind: usize,
        mut listing: OwningIter,
        mut newest: BinaryHeap<Reverse<i64>>,
        limit_ns: i64,
        is_in_use: &impl Fn(AgingCandidate<'_>) -> bool,
    ) -> (Option<Pass>, usize) {
        let Some(Ok(entry)) = listing.next() else {
            let is_full = newest.len() >= MOST_VIEWS;
            self.oldest_kept_ns[kind] = newest.peek().filter(|_| is_full).map_or(i64::MIN, |oldest| oldest.0);
            return (if kind == 0 { views_pass(dirs, 1) } else { texts_pass(dirs) }, 0);
        };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let was_removed = match (view_named(kind, name), files::meta_at(dirs.dir(VIEW_DIRS[kind]), name)) {
            (Some(view), Ok(Some(meta))) if meta.is_file() && !is_in_use(view) => {
                let changed_ns = dirs.changed_ns(&meta);
                let is_old = changed_ns < limit_ns.max(self.oldest_kept_ns[kind]);
                let was_removed = is_old && files::remove_at(dirs.dir(VIEW_DIRS[kind]), name).unwrap_or(false);
                if !was_removed {
                    newest.push(Reverse(changed_ns));
                    if newest.len() > MOST_VIEWS {
                        newest.pop();
                    }
                }
                was_removed
            }
            _ => false,
        };
        (Some(Pass::Views { kind, listing, newest }), usize::from(was_removed))
    }
}

const VIEW_DIRS: [SpoolDir; 2] = [SpoolDir::Agents, SpoolDir::Handoffs];

fn views_pass(dirs: &SpoolDirs, kind: usize) -> Option<Pass> {
    let listing = files::open_listing(dirs.dir(VIEW_DIRS[kind])).ok()?;
    Some(Pass::Views { kind, listing, newest: BinaryHeap::new() })
}

fn texts_pass(dirs: &SpoolDirs) -> Option<Pass> {
    let personas = open_personas(dirs).and_then(files::open_listing).ok()?;
    Some(Pass::Texts { personas, of: None })
}

/// Looks at one text; at the end of its folder, opens the next persona's.
fn age_text(
    dirs: &SpoolDirs,
    mut personas: OwningIter,
    of: Option<(OwnedFd, OwningIter)>,
    limit_ns: i64,
    is_in_use: &impl Fn(AgingCandidate<'_>) -> bool,
) -> (Option<Pass>, usize) {
    let Some((folder, mut listing)) = of else {
        let Some(Ok(entry)) = personas.next() else { return (None, 0) };
        let of = open_texts(dirs, OsStr::from_bytes(entry.file_name().to_bytes()));
        return (Some(Pass::Texts { personas, of }), 0);
    };
    let Some(Ok(entry)) = listing.next() else { return (Some(Pass::Texts { personas, of: None }), 0) };
    let name = OsStr::from_bytes(entry.file_name().to_bytes());
    let was_removed = match (text_named(name), files::meta_at(&folder, name)) {
        (Some(text), Ok(Some(meta))) if meta.is_file() && dirs.changed_ns(&meta) < limit_ns && !is_in_use(text) => {
            files::remove_at(&folder, name).unwrap_or(false)
        }
        _ => false,
    };
    (Some(Pass::Texts { personas, of: Some((folder, listing)) }), usize::from(was_removed))
}

/// Opens the folder of all personas. Follows no link below the home.
fn open_personas(dirs: &SpoolDirs) -> io::Result<OwnedFd> {
    files::open_dir_at(files::open_dir_at(files::open_dir(dirs.home())?, "data")?, "personas")
}

/// The open folder of a persona's texts, and its listing. Follows no link.
fn open_texts(dirs: &SpoolDirs, persona: &OsStr) -> Option<(OwnedFd, OwningIter)> {
    persona.to_str()?.parse::<Slug>().ok()?;
    let personas = open_personas(dirs).ok()?;
    let texts = files::open_dir_at(files::open_dir_at(personas, persona).ok()?, "texts").ok()?;
    let listing = files::open_listing(&texts).ok()?;
    Some((texts, listing))
}

/// The view with this file name; `None` if it is not the name of a view's file.
fn view_named(kind: usize, name: &OsStr) -> Option<AgingCandidate<'static>> {
    let id = name.to_str()?.strip_suffix(".json")?;
    if kind == 0 { id.parse().ok().map(AgingCandidate::Agent) } else { id.parse().ok().map(AgingCandidate::Handoff) }
}

/// The text with this file name; `None` if it is not the name of a text's file.
fn text_named(name: &OsStr) -> Option<AgingCandidate<'_>> {
    let name = name.to_str()?;
    DeliveryId::try_from(name.strip_suffix(".md")?.to_owned()).ok().map(|_| AgingCandidate::Text(name))
}
