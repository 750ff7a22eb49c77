//! What people may change while the loop runs: the rules for work items, and the roles of personas.

use crate::config::{Home, rules};
use crate::core::decision::Decision;
use crate::core::event::Event;
use crate::core::id::Slug;
use crate::core::rows::agent::Agent;
use crate::core::rules::Rules;
use crate::core::state::State;
use crate::core::time::Now;
use crate::files::{self, FileStamp};
use crate::personas;
use std::collections::{BTreeMap, BTreeSet};

/// A file that can't be used and was changed less than this many milliseconds ago may not be whole yet.
const FRESH_MS: i64 = 2_000;
/// After a shortage, the rules are looked at again in this many milliseconds.
const AGAIN_MS: u64 = 2_000;

#[derive(Default)]
pub(super) struct Learned {
    rules: Option<FileStamp>,
    /// Personas whose role was read, each with the stamp of its file at that time.
    known: BTreeMap<Slug, Option<FileStamp>>,
    /// All roles that were found. They are kept here and not only in the state, because several may be found before the
    /// first `Event::Roles` is decided.
    roles: BTreeMap<Slug, String>,
    /// Personas of live agents whose role can't be read, and why.
    unread: BTreeMap<Slug, String>,
}

impl Learned {
    /// Reads the rules at the start.
    ///
    /// # Errors
    /// They can't be used.
    pub(super) fn begin(home: &Home) -> Result<(Learned, Rules), rules::RulesFileError> {
        let file_stamp = files::file_stamp(&home.rules());
        let rules = rules::load(&home.rules())?;
        Ok((Learned { rules: file_stamp, ..Learned::default() }, rules))
    }

    /// Reads the rules again if their file has changed. Each unusable state of the file is reported once.
    ///
    /// # Errors
    /// The file may not be whole yet, or the system is short of something that it takes to read it. The value says in
    /// how many milliseconds to look at it again.
    pub(super) fn look_at_rules(&mut self, home: &Home, now: &Now) -> Result<Option<Event>, u64> {
        let path = home.rules();
        let file_stamp = files::file_stamp(&path);
        if file_stamp == self.rules {
            return Ok(None);
        }
        let age_ms =
            file_stamp.map_or(i64::MAX, |file_stamp| now.wall_ms.saturating_sub(file_stamp.mtime_ns / 1_000_000));
        let read = rules::load(&path);
        if read.is_err() && (0..FRESH_MS).contains(&age_ms) {
            return Err(u64::try_from(FRESH_MS - age_ms).unwrap_or(0));
        }
        if let Err(error) = &read
            && error.is_passing()
        {
            tracing::debug!(%error, "could not look at the rules for work items; the look is repeated");
            return Err(AGAIN_MS);
        }
        self.rules = file_stamp;
        match &read {
            Ok(_) => tracing::info!("reloaded the rules for work items"),
            Err(error) => {
                tracing::error!(%error, "could not reload the rules for work items; the previous rules stay in force")
            }
        }
        Ok(Some(Event::Rules(read.map(Box::new).map_err(|error| error.to_string()))))
    }

    /// Looks for the roles of the personas of all live agents.
    pub(super) fn roles(&mut self, home: &Home, state: &State) -> Option<Event> {
        let slugs = live_personas(state.agents.values());
        self.known.retain(|slug, _| slugs.contains(slug));
        self.roles.retain(|slug, _| slugs.contains(slug));
        self.unread.retain(|slug, _| slugs.contains(slug));
        self.learn(home, slugs)
    }

    /// Looks for the roles of the personas of changed agents, if these personas were not looked at before.
    pub(super) fn new_roles(&mut self, home: &Home, decision: &Decision) -> Option<Event> {
        let mut slugs = live_personas(decision.agents.values());
        slugs.retain(|slug| !self.known.contains_key(slug) && !self.unread.contains_key(slug));
        self.learn(home, slugs)
    }

    /// Reads the roles of these personas where a file has changed. Returns an event if a role has changed.
    pub(super) fn learn(&mut self, home: &Home, slugs: impl IntoIterator<Item = Slug>) -> Option<Event> {
        let folder = home.personas();
        let before = self.roles.clone();
        for slug in slugs {
            let file_stamp = personas::file_stamp(&folder, &slug);
            if self.known.get(&slug) == Some(&file_stamp) {
                continue;
            }
            match personas::role(&folder, &slug) {
                Ok(Some(role)) => drop(self.roles.insert(slug.clone(), role)),
                Ok(None) => drop(self.roles.remove(&slug)),
                // The role that was known still counts. After a restart none is known, so people must be told.
                Err(error) => {
                    self.not_read(slug, error.to_string());
                    continue;
                }
            }
            self.unread.remove(&slug);
            self.known.insert(slug, file_stamp);
        }
        (self.roles != before).then(|| Event::Roles(self.roles.clone()))
    }

    fn not_read(&mut self, slug: Slug, why: String) {
        if self.unread.get(&slug) != Some(&why) {
            tracing::warn!(%slug, error = why, "could not read a persona's role");
        }
        self.known.remove(&slug);
        self.unread.insert(slug, why);
    }

    /// The first persona whose role can't be read, for the view.
    pub(super) fn problem(&self) -> Option<String> {
        let (slug, why) = self.unread.first_key_value()?;
        let role = self.roles.get(slug).map_or_else(
            || "its agents have no role but what data/rules.toml gives them".to_owned(),
            |role| format!("its agents keep the role {role}"),
        );
        Some(format!("the role of persona {slug} can't be read, so {role}: {why}"))
    }
}

fn live_personas<'a>(agents: impl Iterator<Item = &'a Agent>) -> BTreeSet<Slug> {
    agents.filter(|agent| agent.state.is_live()).filter_map(|agent| agent.persona_slug.clone()).collect()
}
