//! Makes new windows, each once, and finds them again by a mark that they get when they are made.
//!
//! The line that makes a window also sets a server option that names the creation. It does nothing if the option is
//! already set, so it can be repeated. The same line puts the creation id into the environment of the program.
//! Afterwards a pane option gets the id too, because a program may overwrite its own environment.

use super::guard::Names;
use super::pane::{first, same};
use super::protocol::Block;
use super::quote::{is_plain_id, quote};
use super::started::{VARIABLE, was_started_by};
use super::supervisor::LiveClient;
use super::{Error, Tmux};
use crate::core::pane::PaneRef;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep, timeout};

/// How long a pane that was just made may not be found: between fork and exec, its process does not have its own
/// environment yet.
const BIRTH: Duration = Duration::from_millis(500);
/// How long the disk of a new window's folder may take to answer.
const DISK_PATIENCE: Duration = Duration::from_secs(30);
/// How many connections a creation or a search is tried over.
const TRIES: u32 = 3;

/// A program to be started in a new window.
#[derive(Debug, Clone)]
pub struct SpawnPlan {
    /// The id of the creation, which is never used again: hexadecimal digits and hyphens.
    pub creation: String,
    /// The session that the window goes into.
    pub session: String,
    /// Make the session, detached, if it is missing.
    pub own_session: bool,
    pub window_name: String,
    /// Where the program starts; must be a directory.
    pub cwd: PathBuf,
    pub env: Vec<(String, String)>,
    /// The program and its arguments; no shell is in between.
    pub argv: Vec<String>,
    /// Columns and rows of the session, if it is made.
    pub size: (u16, u16),
}

/// The result of a creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpawnOutcome {
    /// The program runs, or ran a moment ago, in this pane.
    Started(PaneRef),
    /// The program was started and has ended.
    Died,
    Failed(String),
    /// It is not known whether the program was started: look again.
    Unknown(String),
    /// No server answers. If the connection was lost on the way, the program may have been started: look again.
    NoTmux,
}

/// What a search for a creation found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreationState {
    Alive(PaneRef),
    /// The pane was made, and its process has ended.
    Died,
    /// The pane was never made in this life of the server.
    Never,
}

impl Tmux {
    /// Starts a program in a new window, once for each creation id, however often it is called. Nobody's current window
    /// changes.
    pub async fn spawn(&self, plan: &SpawnPlan) -> SpawnOutcome {
        if let Err(error) = check(plan).await {
            return SpawnOutcome::Failed(error);
        }
        for _ in 0..TRIES {
            if let Ok(outcome) = self.spawn_once(plan).await.or_else(end_of) {
                return outcome;
            }
        }
        SpawnOutcome::NoTmux
    }

    /// Searches for a creation, over new connections if necessary.
    ///
    /// # Errors
    /// The outcome to report if the search gives no answer.
    pub async fn look_for(&self, creation: &str) -> Result<CreationState, SpawnOutcome> {
        for _ in 0..TRIES {
            match self.find_spawned(creation).await.map_err(end_of) {
                Ok(found) => return Ok(found),
                Err(Ok(end)) => return Err(end),
                Err(Err(LostOnTheWay)) => {}
            }
        }
        Err(SpawnOutcome::NoTmux)
    }

    async fn spawn_once(&self, plan: &SpawnPlan) -> Result<SpawnOutcome, Error> {
        match self.find_spawned(&plan.creation).await? {
            CreationState::Alive(pane) => return Ok(SpawnOutcome::Started(pane)),
            CreationState::Died => return Ok(SpawnOutcome::Died),
            CreationState::Never => {}
        }
        self.check_sizes().await?;
        let names = &self.inner.shared.names;
        let live = self.live().await?;
        let session = session_of(&self.change(&live, SESSIONS.to_owned()).await?, &plan.session)?;
        if session.is_none() {
            may_make(plan)?;
        }
        let reply = self.change(&live, creation_line(names, &live, plan, session)?).await?;
        let pane = reply.iter().find_map(|block| created(block, &live));
        if let Some(error) = reply.iter().find(|block| pane.is_none() && !block.ok) {
            // Nothing was made, so the server option must not say that it was. The fence makes sure that no other
            // connection has made the window meanwhile.
            let made = names.made(&plan.creation);
            self.change(&live, format!("if-shell -F \"{}\" {{ set-option -s -u {made} }}", names.fenced(&live.fence)))
                .await?;
            // Since the search, the line for another window may have made the session, or the end of its last window
            // may have closed it.
            let now = session_of(&self.change(&live, SESSIONS.to_owned()).await?, &plan.session)?;
            return Err(if now == session { Error::Said(error.text()) } else { Error::Lost });
        }
        let Some(pane) = pane else {
            // The guard refused: the window was made before, or another connection has taken over. Another search shows
            // which.
            let fence = self.change(&live, format!("display-message -p \"#{{{}}}\"", names.fence())).await?;
            if first(&fence)?.text() != live.fence {
                live.give_up();
                sleep(Duration::from_millis(100)).await;
            }
            return Err(Error::Lost);
        };
        let born = names.born();
        let note = format!(
            "if-shell -F -t {pane} \"{}\" {{ set-option -p -t {pane} {born} {} }}",
            names.same_pane(&live.fence, &pane),
            plan.creation
        );
        // The pane is made, even if its option can't be set.
        let _ = self.change(&live, note).await;
        tracing::info!(pane = %pane, creation = plan.creation, "made a window");
        Ok(SpawnOutcome::Started(pane))
    }

    /// Searches for what a creation made.
    ///
    /// # Errors
    /// When no server answers, when `creation` is not an id, or when a process that may be the program could not be
    /// looked at.
    pub async fn find_spawned(&self, creation: &str) -> Result<CreationState, Error> {
        if !is_plain_id(creation) {
            return Err(Error::BadArgument { what: "the creation id", rule: "hexadecimal digits and hyphens" });
        }
        let names = &self.inner.shared.names;
        let until = Instant::now() + BIRTH;
        loop {
            let (live, reply) = self.read(&format!("display-message -p \"#{{{}}}\"", names.made(creation))).await?;
            let made = !first(&reply)?.text().trim().is_empty();
            let mut unseen = None;
            let (server, mut panes) = self.list_noted(&names.may_be_born_of(creation)).await?;
            if server != live.info.id {
                panes.clear();
            }
            // A pane with the creation's option is certainly the right one, so such panes come first. The environment
            // is less certain: in a session that an earlier version of tasuki made, a user's window may have it too.
            panes.sort_by_key(|noted| noted.born != creation);
            for noted in panes {
                let pane = noted.row.pane;
                // An agent in it is known already.
                let is_known = !noted.claim.is_empty();
                let is_it = noted.born == creation
                    || was_started_by(pane.pid, creation).unwrap_or_else(|error| {
                        // A process that forbids a look does so for ever. It may be the program that is searched for
                        // only if nothing else is known of its pane.
                        if !is_known || error.kind() != io::ErrorKind::PermissionDenied {
                            unseen = Some(error);
                        }
                        false
                    });
                if is_it {
                    let is_noted = noted.born == creation;
                    tracing::debug!(%pane, dead = noted.row.dead, noted = is_noted, creation, "found the window");
                    return Ok(if noted.row.dead { CreationState::Died } else { CreationState::Alive(pane) });
                }
            }
            if !made {
                return Ok(CreationState::Never);
            }
            if Instant::now() >= until {
                if let Some(error) = unseen {
                    return Err(Error::Unseen(error));
                }
                tracing::debug!(creation, "the window was made, and its pane is gone");
                return Ok(CreationState::Died);
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The name that a session has now; `None` if there is no session of this number.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn session_name(&self, number: u32) -> Result<Option<String>, Error> {
        let (_, reply) = self.read(SESSIONS).await?;
        let text = first(&reply)?.text();
        let found = sessions_in(&text).find(|(found, _)| *found == number);
        Ok(found.map(|(_, name)| name.to_owned()))
    }

    /// Kills this pane if it still runs the same process, which the server itself checks as it kills. Returns `false`
    /// if the pane was gone before, or is still there.
    ///
    /// # Errors
    /// When no server answers, or the connection was lost on the way.
    pub async fn kill_pane(&self, pane: &PaneRef) -> Result<bool, Error> {
        let names = &self.inner.shared.names;
        let live = self.live().await?;
        let before = self.noted(&live, pane.pane).await?.map(|noted| noted.row);
        if same(pane, before).is_err() {
            return Ok(false);
        }
        let guard = names.same_pane(&live.fence, pane);
        self.change(&live, format!("if-shell -F -t {pane} \"{guard}\" {{ kill-pane -t {pane} }}")).await?;
        let after = self.noted(&live, pane.pane).await?.map(|noted| noted.row);
        Ok(same(pane, after).is_err())
    }
}

/// The connection was lost, and the result is unknown: another connection must look.
struct LostOnTheWay;

/// What an error means for a creation.
fn end_of(error: Error) -> Result<SpawnOutcome, LostOnTheWay> {
    match error {
        Error::NoServer(_) => Ok(SpawnOutcome::NoTmux),
        Error::Said(text) => Ok(SpawnOutcome::Failed(text)),
        Error::Lost | Error::NotConnected(_) => Err(LostOnTheWay),
        error @ Error::Unseen(_) => Ok(SpawnOutcome::Unknown(error.to_string())),
        error => Ok(SpawnOutcome::Failed(error.to_string())),
    }
}

fn nul_error(_: super::quote::HasNul) -> Error {
    Error::BadArgument { what: "a name, path, variable or argument", rule: "free of NUL characters" }
}

async fn check(plan: &SpawnPlan) -> Result<(), String> {
    if plan.argv.is_empty() {
        return Err("the launch line is empty".to_owned());
    }
    let (path, cwd) = (plan.cwd.display(), plan.cwd.clone());
    // A disk may not answer for minutes, and a thread of the runtime must not wait for it.
    let look = tokio::task::spawn_blocking(move || cwd.is_dir());
    let Ok(Ok(is_folder)) = timeout(DISK_PATIENCE, look).await else {
        let within = DISK_PATIENCE.as_secs();
        return Err(format!(
            "the disk of {path} did not answer within {within} s, so no window was made there; see why it hangs"
        ));
    };
    // tmux would silently take the home folder instead.
    if !is_folder || plan.cwd.to_str().is_none() {
        return Err(format!("{path} is not a directory, or its path is not UTF-8"));
    }
    if let Some((name, _)) = plan.env.iter().find(|(name, _)| name.is_empty() || name.contains(['=', '\0'])) {
        return Err(format!("{name:?} is not the name of an environment variable"));
    }
    Ok(())
}

/// Asks for all sessions: the number behind `$`, then the name.
const SESSIONS: &str = "list-sessions -F \"#{session_id} #{session_name}\"";

/// The number of the session that has exactly this name. A name is never used as a target: tmux gives `#`, and `@`,
/// `$`, `%` or `=` at the beginning, a meaning of their own, although session names may contain them.
fn session_of(reply: &[Block], name: &str) -> Result<Option<u32>, Error> {
    let text = first(reply)?.text();
    let found = sessions_in(&text).find(|(_, found)| *found == name);
    Ok(found.map(|(number, _)| number))
}

/// The numbers and names in an answer to [`SESSIONS`].
fn sessions_in(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let rows = text.lines().filter_map(|row| row.strip_prefix('$')?.split_once(' '));
    rows.filter_map(|(number, name)| Some((number.parse().ok()?, name)))
}

/// Whether a missing session may be made: only with a name that tmux keeps unchanged. A session that exists already may
/// have another name, but tasuki can't make such a session again after it has closed.
fn may_make(plan: &SpawnPlan) -> Result<(), Error> {
    let name = &plan.session;
    if !plan.own_session {
        return Err(Error::Said(format!("there is no tmux session {name:?}")));
    }
    if name.is_empty() || name.contains([':', '.']) || name.contains(char::is_control) {
        return Err(Error::Said(format!("{name:?} is not a name that a tmux session can have")));
    }
    Ok(())
}

/// A target that means the session of exactly this name, for names that [`may_make`] allows. After `=`, tmux takes a
/// name literally, unless it begins with `$`: then it is a session's number. So such a name becomes a pattern that
/// matches only this name.
fn target_of(name: &str) -> String {
    let Some(rest) = name.strip_prefix('$') else { return format!("={name}:") };
    let literal: String =
        rest.chars().map(|c| if "\\*?[".contains(c) { format!("\\{c}") } else { c.to_string() }).collect();
    format!("[$]{literal}:")
}

/// The line that puts the directory into an option, where tmux expands no formats in it, and then makes the window if
/// it was not made yet. A new session has no client yet, and a user may have set `destroy-unattached`, so the line sets
/// it to off in that session. tmux gives the variables of `new-session -e` also to every later window of the session.
/// Those windows must not have an agent's variables, so the line removes the variables from the session once the first
/// window has them.
fn creation_line(names: &Names, live: &LiveClient, plan: &SpawnPlan, session: Option<u32>) -> Result<String, Error> {
    let made = names.made(&plan.creation);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let guard = format!("#{{&&:{},#{{==:#{{{made}}},}}}}", names.fenced(&live.fence));
    let directory = names.directory();
    let creation = (VARIABLE.to_owned(), plan.creation.clone());
    let mut keep = String::new();
    let mut make = match session {
        Some(number) => format!("new-window -d -t {}", quote(&format!("${number}:")).map_err(nul_error)?),
        None => {
            let (columns, rows) = plan.size;
            let name = quote(&plan.session.replace('#', "##")).map_err(nul_error)?;
            let target = quote(&target_of(&plan.session)).map_err(nul_error)?;
            keep = format!(" ; set-option -t {target} destroy-unattached off");
            for (name, _) in plan.env.iter().chain([&creation]) {
                keep.push_str(&format!(" ; set-environment -t {target} -u {}", quote(name).map_err(nul_error)?));
            }
            format!("new-session -d -E -x {columns} -y {rows} -s {name}")
        }
    };
    let name: String = plan.window_name.chars().filter(|c| !c.is_control() && !matches!(c, '#' | '%')).collect();
    make.push_str(&format!(
        " -P -F \"#{{pane_id}} #{{pane_pid}}\" -n {} -c \"#{{{directory}}}\"",
        quote(&name).map_err(nul_error)?
    ));
    for (name, value) in plan.env.iter().chain([&creation]) {
        make.push_str(&format!(" -e {}", quote(&format!("{name}={value}")).map_err(nul_error)?));
    }
    make.push_str(" --");
    // A single word would be given to a shell; several are executed as they are.
    let env = (plan.argv.len() == 1).then(|| "env".to_owned());
    for word in env.iter().chain(&plan.argv) {
        make.push(' ');
        make.push_str(&quote(word).map_err(nul_error)?);
    }
    let cwd = quote(&plan.cwd.to_string_lossy()).map_err(nul_error)?;
    Ok(format!(
        "set-option -s -- {directory} {cwd} ; if-shell -F \"{guard}\" {{ set-option -s {made} {now} ; {make}{keep} }}"
    ))
}

fn created(block: &Block, live: &LiveClient) -> Option<PaneRef> {
    let text = block.text();
    let (pane, pid) = text.strip_prefix('%')?.split_once(' ')?;
    Some(PaneRef { server: live.info.id, pane: pane.parse().ok()?, pid: pid.trim().parse().ok()? })
}
