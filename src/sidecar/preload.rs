//! What a request depends on outside the state: a persona, a document, a process.

use crate::agents::profile::Profiles;
use crate::agents::transcript;
use crate::config::Home;
use crate::core::event::RequestFacts;
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::{DocumentRequest, Needs, PersonaOf};
use crate::core::rows::agent::Agent;
use crate::core::state::State;
use crate::limits;
use crate::process::{self, ProcessState};
use crate::runner;
use crate::spool::documents;
use crate::store::{Error, Store};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, io, thread};

/// How long the loop waits for the disk of a folder that a request names.
const DISK_PATIENCE: Duration = Duration::from_secs(1);
/// The largest number of looks that may wait for a disk at the same time. Each keeps a thread as long as its disk
/// hangs.
const MAX_LOOKS: usize = 8;
/// The looks that have not ended.
static LOOKS: AtomicUsize = AtomicUsize::new(0);

/// Looks up what a request depends on.
pub(super) struct Preload<'a> {
    pub(super) home: &'a Home,
    pub(super) store: &'a Store,
    pub(super) state: &'a State,
    pub(super) profiles: &'a Profiles,
    /// What could not be looked up because the system is short of something. Then the request must wait.
    pub(super) unavailable: Option<String>,
}

impl Preload<'_> {
    /// Looks up the facts that the request's answer depends on.
    ///
    /// # Errors
    /// The store can't be read.
    pub(super) fn facts(&mut self, needs: &Needs<'_>) -> Result<RequestFacts, Error> {
        let slug = match needs.persona {
            Some(PersonaOf::Agent(id)) => agent_named(self.state, id).and_then(|agent| agent.persona_slug.clone()),
            Some(PersonaOf::Handoff(id)) => {
                let handoff = id.parse().ok().and_then(|id: HandoffId| self.state.handoffs.get(&id));
                handoff.map(|handoff| handoff.persona_slug.clone())
            }
            Some(PersonaOf::Named(slug)) => Some(slug.clone()),
            None => None,
        };
        let error_known = match needs.error.and_then(|id| id.parse().ok()) {
            Some(id) => self.store.has_error(&id)?,
            None => false,
        };
        let document = self.provided_document(needs.document);
        let messages = needs.messages_of.and_then(|id| self.messages(id));
        let persona = slug.and_then(|slug| Some((slug.clone(), self.told(runner::persona_facts(self.home, &slug))?)));
        let no_cwd = needs.cwd.and_then(|cwd| self.told(is_not_a_folder(cwd))).unwrap_or(false);
        let runs = needs.runs.and_then(|id| self.runs(id));
        Ok(RequestFacts { persona, error_known, document, messages, no_cwd, runs })
    }

    /// Whether an agent's process runs, or, if that is not known, its pane's process.
    fn runs(&self, agent_id: &str) -> Option<bool> {
        let agent = agent_named(self.state, agent_id)?;
        match agent.process.map(|process| process::life(&process)) {
            Some(ProcessState::Alive) => Some(true),
            Some(ProcessState::Gone) => Some(false),
            Some(ProcessState::Unknown) => None,
            None => agent.pane.map(|pane| process::exists(pane.pid)),
        }
    }

    /// Returns the result of a lookup. If it failed because the system is short of something, notes why.
    fn told<T>(&mut self, look: Result<T, String>) -> Option<T> {
        look.map_err(|why| self.unavailable = Some(why)).ok()
    }

    /// The document that a request provides. It is read now, because the file may hold something else later.
    fn provided_document(&mut self, document: Option<&DocumentRequest>) -> Option<Result<String, String>> {
        let document = document?;
        if let Some(text) = &document.text {
            return Some(Ok(text.clone()));
        }
        let path = document.path.as_ref()?;
        let read = documents::read_inside(self.home.root(), Path::new(path));
        let text = match read {
            Err(error) if error.unavailable().is_some_and(limits::is_shortage) => {
                return self.told(Err(error.to_string()));
            }
            read => read.map_err(|error| error.to_string()),
        };
        Some(text.map(|reading| String::from_utf8_lossy(&reading.bytes).into_owned()))
    }

    /// How many messages the transcript of an agent holds, if the agent's reply is to be its document.
    fn messages(&mut self, agent_id: &str) -> Option<u64> {
        let agent = agent_named(self.state, agent_id)?;
        let profile = self.profiles.get(&agent.profile)?;
        match transcript::read(profile, Path::new(agent.transcript_path.as_ref()?)) {
            Ok(transcript) => Some(transcript.messages),
            Err(error) if error.is_shortage() => self.told(Err(error.to_string())),
            Err(_) => None,
        }
    }
}

/// The agent in the working set that a request names.
pub(super) fn agent_named<'s>(state: &'s State, id: &str) -> Option<&'s Agent> {
    state.agents.get(&id.parse::<AgentId>().ok()?)
}

/// Whether the path is certainly not a folder that an agent could work in. If the disk does not answer in time, the
/// start of the agent finds out.
///
/// # Errors
/// Why no thread could be started that looks at the path.
fn is_not_a_folder(path: &str) -> Result<bool, String> {
    let cwd = PathBuf::from(path);
    let look = move || fs::metadata(cwd).map_or_else(|error| !limits::is_passing(&error), |meta| !meta.is_dir());
    match within(DISK_PATIENCE, look) {
        Ok(is_none) => Ok(is_none.unwrap_or(false)),
        Err(error) => Err(format!("no thread could be started that looks at {path}: {error}")),
    }
}

/// What `look` finds out on a thread of its own; none if that takes longer than `limit`, or if [`MAX_LOOKS`] others are
/// still waiting for their disk.
fn within<T: Send + 'static>(limit: Duration, look: impl FnOnce() -> T + Send + 'static) -> io::Result<Option<T>> {
    let Some(slot) = LookSlot::take() else { return Ok(None) };
    let (sender, found) = mpsc::channel();
    let look = move || {
        let seen = look();
        drop(slot);
        sender.send(seen)
    };
    thread::Builder::new().name("look".to_owned()).spawn(look)?;
    Ok(found.recv_timeout(limit).ok())
}

/// One of the [`MAX_LOOKS`]; free again when it is dropped.
struct LookSlot;

impl LookSlot {
    fn take() -> Option<Self> {
        let free = |looks| (looks < MAX_LOOKS).then_some(looks + 1);
        LOOKS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).ok().map(|_| LookSlot)
    }
}

impl Drop for LookSlot {
    fn drop(&mut self) {
        LOOKS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    /// Each restart asks again, so the loop would hang for as long as the disk does.
    #[test]
    fn the_loop_does_not_wait_for_a_disk_that_hangs() {
        let (answers, hangs) = mpsc::channel::<()>();
        let hangs = Arc::new(Mutex::new(hangs));
        let asked = Arc::new(AtomicUsize::new(0));
        for _ in 0..MAX_LOOKS + 3 {
            let (hangs, asked) = (Arc::clone(&hangs), Arc::clone(&asked));
            let look = move || {
                asked.fetch_add(1, Ordering::Relaxed);
                hangs.lock().is_ok_and(|hangs| hangs.recv().is_ok())
            };
            assert_eq!(within(Duration::from_millis(20), look).expect("a thread"), None);
        }
        assert!(asked.load(Ordering::Relaxed) <= MAX_LOOKS, "the threads that hang are bounded");
        drop(answers);
        let deadline = Instant::now() + Duration::from_secs(20);
        while LOOKS.load(Ordering::Relaxed) > 0 {
            assert!(Instant::now() < deadline, "a look that has ended is not counted");
            thread::yield_now();
        }
        assert_eq!(is_not_a_folder("/"), Ok(false));
        assert_eq!(is_not_a_folder("/nowhere"), Ok(true));
        assert_eq!(is_not_a_folder("/dev/null"), Ok(true));
    }
}
