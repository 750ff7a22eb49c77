//! Removes old history: views of agents and handoffs that have ended, and files of texts that were delivered, after 7
//! days; and all but the newest 20,000 views of each kind. The store keeps the contents, and the sidecar writes a view
//! again on request. It removes a few at a time, and never by the wall clock alone, as in `sweep`.

use super::dirs::{SpoolDir, SpoolDirs};
use crate::core::id::{AgentId, DeliveryId, HandoffId, Slug};
use crate::core::time::{BelievedClock, Now};
use crate::files;
use nix::dir::OwningIter;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

/// How long a view of history, or the file of a text, is kept, in milliseconds.
pub const KEPT_MS: i64 = 7 * 24 * 3_600_000;
/// How many views of history of each kind are kept at most.
pub const MOST_VIEWS: usize = 20_000;

/// Whose file it is that may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Old<'a> {
    Agent(AgentId),
    Handoff(HandoffId),
    /// The file of a text, by its name.
    Text(&'a str),
}

#[derive(Default)]
pub(super) struct Ager {
    clock: BelievedClock,
    round: Option<Round>,
    /// What is older is not among the newest views of agents, and of handoffs, as the last round saw them.
    cut_ns: [i64; 2],
}

impl std::fmt::Debug for Ager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ager").field("cut_ns", &self.cut_ns).finish_non_exhaustive()
    }
}

enum Round {
    /// Through the views of agents (0) or of handoffs (1); and when the newest of history had changed.
    Views { kind: usize, listing: OwningIter, newest: BinaryHeap<Reverse<i64>> },
    /// The personas' folders, and the texts of one of them.
    Texts { personas: OwningIter, of: Option<(OwnedFd, OwningIter)> },
}

impl Ager {
    /// Looks at the next `max` files in turn, and removes those that are old and that `is_wanted` does not want;
    /// returns how many it removed.
    pub(super) fn age(
        &mut self,
        dirs: &SpoolDirs,
        max: usize,
        now: &Now,
        is_wanted: impl Fn(Old<'_>) -> bool,
    ) -> usize {
        let Some(wall_ms) = self.clock.wall_ms(now) else { return 0 };
        let limit_ns = wall_ms.saturating_sub(KEPT_MS).saturating_mul(1_000_000);
        let mut removed = 0;
        let mut round = self.round.take().or_else(|| views_round(dirs, 0));
        for _ in 0..max {
            round = match round {
                None => break,
                Some(Round::Views { kind, listing, newest }) => {
                    let (next, went) = self.age_view(dirs, kind, listing, newest, limit_ns, &is_wanted);
                    removed += went;
                    next
                }
                Some(Round::Texts { personas, of }) => {
                    let (next, went) = age_text(dirs, personas, of, limit_ns, &is_wanted);
                    removed += went;
                    next
                }
            };
        }
        self.round = round;
        removed
    }

    /// Whether all was looked through to the end, and no new round was begun.
    pub(super) fn is_aged(&self) -> bool {
        self.round.is_none()
    }

    /// Looks at one view; at the end of its folder, begins with the next one.
    fn age_view(
        &mut self,
        dirs: &SpoolDirs,
        kind: usize,
        mut listing: OwningIter,
        mut newest: BinaryHeap<Reverse<i64>>,
        limit_ns: i64,
        is_wanted: &impl Fn(Old<'_>) -> bool,
    ) -> (Option<Round>, usize) {
        let Some(Ok(entry)) = listing.next() else {
            let is_full = newest.len() >= MOST_VIEWS;
            self.cut_ns[kind] = newest.peek().filter(|_| is_full).map_or(i64::MIN, |oldest| oldest.0);
            return (if kind == 0 { views_round(dirs, 1) } else { texts_round(dirs) }, 0);
        };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let went = match (old_view(kind, name), files::meta_at(dirs.dir(ROOMS[kind]), name)) {
            (Some(old), Ok(Some(meta))) if meta.is_file() && !is_wanted(old) => {
                let changed_ns = dirs.changed_ns(&meta);
                let is_old = changed_ns < limit_ns.max(self.cut_ns[kind]);
                let went = is_old && files::remove_at(dirs.dir(ROOMS[kind]), name).unwrap_or(false);
                if !went {
                    newest.push(Reverse(changed_ns));
                    if newest.len() > MOST_VIEWS {
                        newest.pop();
                    }
                }
                went
            }
            _ => false,
        };
        (Some(Round::Views { kind, listing, newest }), usize::from(went))
    }
}

const ROOMS: [SpoolDir; 2] = [SpoolDir::Agents, SpoolDir::Handoffs];

fn views_round(dirs: &SpoolDirs, kind: usize) -> Option<Round> {
    let listing = files::open_listing(dirs.dir(ROOMS[kind])).ok()?;
    Some(Round::Views { kind, listing, newest: BinaryHeap::new() })
}

fn texts_round(dirs: &SpoolDirs) -> Option<Round> {
    let personas = files::open_dir(&dirs.home().join("data/personas")).and_then(files::open_listing).ok()?;
    Some(Round::Texts { personas, of: None })
}

/// Looks at one text, or goes into the next persona's folder.
fn age_text(
    dirs: &SpoolDirs,
    mut personas: OwningIter,
    of: Option<(OwnedFd, OwningIter)>,
    limit_ns: i64,
    is_wanted: &impl Fn(Old<'_>) -> bool,
) -> (Option<Round>, usize) {
    let Some((folder, mut listing)) = of else {
        let Some(Ok(entry)) = personas.next() else { return (None, 0) };
        let of = open_texts(dirs, OsStr::from_bytes(entry.file_name().to_bytes()));
        return (Some(Round::Texts { personas, of }), 0);
    };
    let Some(Ok(entry)) = listing.next() else { return (Some(Round::Texts { personas, of: None }), 0) };
    let name = OsStr::from_bytes(entry.file_name().to_bytes());
    let went = match (old_text(name), files::meta_at(&folder, name)) {
        (Some(old), Ok(Some(meta))) if meta.is_file() && dirs.changed_ns(&meta) < limit_ns && !is_wanted(old) => {
            files::remove_at(&folder, name).unwrap_or(false)
        }
        _ => false,
    };
    (Some(Round::Texts { personas, of: Some((folder, listing)) }), usize::from(went))
}

/// The texts of a persona; none where there are none. No link is followed.
fn open_texts(dirs: &SpoolDirs, persona: &OsStr) -> Option<(OwnedFd, OwningIter)> {
    persona.to_str()?.parse::<Slug>().ok()?;
    let personas = files::open_dir(&dirs.home().join("data/personas")).ok()?;
    let texts = files::open_dir_at(files::open_dir_at(personas, persona).ok()?, "texts").ok()?;
    let listing = files::open_listing(&texts).ok()?;
    Some((texts, listing))
}

fn old_view(kind: usize, name: &OsStr) -> Option<Old<'static>> {
    let id = name.to_str()?.strip_suffix(".json")?;
    if kind == 0 { id.parse().ok().map(Old::Agent) } else { id.parse().ok().map(Old::Handoff) }
}

fn old_text(name: &OsStr) -> Option<Old<'_>> {
    let name = name.to_str()?;
    DeliveryId::try_from(name.strip_suffix(".md")?.to_owned()).ok().map(|_| Old::Text(name))
}
