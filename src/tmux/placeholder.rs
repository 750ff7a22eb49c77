//! Keeps a session alive while its only program is replaced, shows messages in people's status lines, and reads a
//! session's variables.

use super::guard::Names;
use super::pane::{first, same};
use super::private::{STAND_IN, is_stand_in};
use super::probe::{MANUAL_SIZE, WINDOW_SIZE};
use super::protocol::Block;
use super::quote::{in_message, is_plain_id, quote};
use super::supervisor::LiveClient;
use super::{Error, Tmux};
use crate::core::pane::PaneRef;
use std::collections::BTreeSet;

/// Whether a pane is all that its session has, and somebody is attached to that session.
const LAST_AND_SEEN: &str = "#{&&:#{==:#{session_windows}.#{window_panes},1.1},#{!=:#{session_attached},0}}";
/// Longest message for a status line, in characters.
const MAX_MESSAGE: usize = 400;
/// How long the message is shown, in milliseconds.
const MESSAGE_SHOWN_MS: u32 = 5_000;

/// Where a successor's window is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneLocation {
    /// The session's name, which people may change.
    pub session: String,
    /// The number behind `$`, which the session keeps as long as the server lives.
    pub number: u32,
    /// Columns and rows of the pane.
    pub size: (u16, u16),
    /// Whether the session has a placeholder window.
    pub held: bool,
}

impl Tmux {
    /// Tells where a pane is, and makes sure that its session outlives it. If all other panes of the session are
    /// placeholders or will be ended by tasuki too, this adds an empty window, once for each tag.
    ///
    /// # Errors
    /// [`Error::Pane`] when the pane is gone or runs another process; [`Error::Said`] when tmux refuses;
    /// [`Error::BadArgument`] for a tag that is not hexadecimal digits and hyphens; else when no server answers.
    pub async fn hold_placeholder(&self, pane: &PaneRef, tag: &str) -> Result<PaneLocation, Error> {
        check_tag(tag)?;
        // Even if no placeholder is needed, the successor needs a window.
        self.check_sizes().await?;
        let live = self.live().await?;
        let row = self.noted(&live, pane.pane).await?.map(|noted| noted.row);
        let row = same(pane, row).map_err(|reason| Error::Pane { pane: *pane, reason })?;
        let place =
            |held| PaneLocation { session: row.session_name.clone(), number: row.session, size: row.size, held };
        if !self.placeholder_panes(tag).await?.is_empty() {
            self.empty_placeholders(tag).await?;
            return Ok(place(true));
        }
        let guard = self.inner.shared.names.same_pane(&live.fence, pane);
        let leaving = format!("set-option -p -t {pane} {} 1", Names::LEAVING);
        self.done(&live, format!("if-shell -F -t {pane} \"{guard}\" {{ {leaving} }}")).await?;
        if self.somebody_stays(row.session).await? {
            return Ok(place(false));
        }
        let window = self.inner.shared.names.placeholder(tag);
        let at = session_target(row.session);
        let make = format!("new-window -d -P -F \"#{{pane_id}}\" -t {at} -n {window} \"{STAND_IN}\"");
        let reply = self.done(&live, format!("if-shell -F -t {pane} \"{guard}\" {{ {make} }}")).await?;
        self.note_placeholder(&live, &reply, tag).await?;
        self.empty_placeholders(tag).await?;
        Ok(place(!self.placeholder_panes(tag).await?.is_empty()))
    }

    /// Carries out a line. Each part of it must succeed.
    async fn done(&self, live: &LiveClient, line: String) -> Result<Vec<Block>, Error> {
        let reply = self.change(live, line).await?;
        match reply.iter().find(|block| !block.ok) {
            Some(error) => Err(Error::Said(error.text())),
            None => Ok(reply),
        }
    }

    /// Whether this session has a pane that is neither a placeholder nor about to be ended by a handoff of any home.
    async fn somebody_stays(&self, session: u32) -> Result<bool, Error> {
        let row = format!("{}.#{{{}}}", Names::PROCESS, Names::LEAVING);
        let (_, reply) = self.read(&format!("list-panes -s -t {} -F \"{row}\"", session_target(session))).await?;
        let text = first(&reply)?.text();
        Ok(text.lines().filter_map(|row| row.split_once('.')).any(|(pid, leaving)| pid != "0" && leaving.is_empty()))
    }

    /// Marks the new pane that a reply names as the placeholder's. The name of its window is not enough, because a
    /// user's hook may rename each new window.
    async fn note_placeholder(&self, live: &LiveClient, reply: &[Block], tag: &str) -> Result<(), Error> {
        let option = self.inner.shared.names.place();
        for pane in reply.iter().filter_map(|block| block.text().trim().strip_prefix('%')?.parse::<u32>().ok()) {
            self.done(live, format!("set-option -p -t %{pane} {option} {tag}")).await?;
        }
        Ok(())
    }

    /// Fails if this server must not make a window, see [`MANUAL_SIZE`].
    ///
    /// # Errors
    /// [`Error::Said`] with the reason; else when no server answers.
    pub(super) async fn check_sizes(&self) -> Result<(), Error> {
        let (_, reply) = self.read(WINDOW_SIZE).await?;
        match first(&reply)?.text().trim() {
            "manual" => Err(Error::Said(MANUAL_SIZE.to_owned())),
            _ => Ok(()),
        }
    }

    /// Removes the placeholder, wherever it is; nothing happens if there is none. A pane that somebody else has opened
    /// in its window stays. If the session has nothing else and somebody is attached to it, a new window with a shell
    /// replaces the placeholder, because the end of the session would detach them.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a tag that is not hexadecimal digits and hyphens; else when no server answers.
    pub async fn drop_placeholder(&self, tag: &str) -> Result<(), Error> {
        check_tag(tag)?;
        for pane in self.placeholder_panes(tag).await? {
            let shell = format!("new-window -d -t {}", session_target(pane.session));
            self.change_placeholder(&pane, LAST_AND_SEEN, &shell).await?;
            self.change_placeholder(&pane, "1", &format!("kill-pane -t %{}", pane.id)).await?;
        }
        Ok(())
    }

    async fn placeholder_panes(&self, tag: &str) -> Result<Vec<Placeholder>, Error> {
        let names = &self.inner.shared.names;
        let window = names.placeholder(tag);
        let row = format!(
            "#{{pane_id}} #{{session_id}} {} #{{{}}} #{{window_name}} #{{pane_start_command}}",
            Names::PROCESS,
            names.place()
        );
        let condition = names.is_in_placeholder(tag);
        let (_, reply) = self.read(&format!("list-panes -a -f \"{condition}\" -F \"{row}\"")).await?;
        let text = first(&reply)?.text();
        // The sessions of a group share their windows, and tmux lists a pane once for each of them.
        let mut seen = BTreeSet::new();
        let panes = text.lines().filter_map(|row| Placeholder::read(row, tag, &window));
        Ok(panes.filter(|pane| seen.insert(pane.id)).collect())
    }

    /// Replaces the placeholder's pane by a pane without a program, so that nobody can type into it by mistake.
    async fn empty_placeholders(&self, tag: &str) -> Result<(), Error> {
        let panes = self.placeholder_panes(tag).await?;
        let empty = panes.iter().any(|pane| pane.pid == 0);
        for pane in panes.iter().filter(|pane| pane.pid != 0) {
            if !empty {
                let live = self.live().await?;
                let split = format!("split-window -d -P -F \"#{{pane_id}}\" -t %{} ''", pane.id);
                let reply = self.change(&live, split).await?;
                self.note_placeholder(&live, &reply, tag).await?;
            }
            self.change_placeholder(pane, "1", &format!("kill-pane -t %{}", pane.id)).await?;
        }
        Ok(())
    }

    /// Carries out a command if a placeholder's pane is still the same and `condition` is true of it.
    async fn change_placeholder(&self, pane: &Placeholder, condition: &str, command: &str) -> Result<(), Error> {
        let live = self.live().await?;
        // If the pane is gone, tmux expands the condition for the pane of our own session, which has no process either.
        let same = format!("#{{==:#{{pane_id}} {},%{} {}}}", Names::PROCESS, pane.id, pane.pid);
        let guard = format!("#{{&&:{},#{{&&:{same},{condition}}}}}", self.inner.shared.names.fenced(&live.fence));
        self.change(&live, format!("if-shell -F -t %{0} \"{guard}\" {{ {command} }}", pane.id)).await?;
        Ok(())
    }

    /// The value that a variable will have in new windows of a session, whether the session exists or not; `None` if
    /// the variable has no value.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn variable(&self, session: &str, name: &str) -> Result<Option<String>, Error> {
        let target = quote(&format!("={session}")).map_err(|_| has_nul("the session's name"))?;
        let name_of = quote(name).map_err(|_| has_nul("the variable's name"))?;
        // A session that hides a variable answers with its name after a minus.
        for line in [format!("show-environment -t {target} {name_of}"), format!("show-environment -g {name_of}")] {
            let (_, reply) = self.read(&line).await?;
            let text = reply.first().filter(|block| block.ok).map(Block::text).unwrap_or_default();
            if let Some(value) = text.trim_end().strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
                return Ok(Some(value.to_owned()));
            }
            if text.trim_end().strip_prefix('-') == Some(name) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Shows a text in the status line of each attached terminal, and returns how many terminals took it. Nothing in
    /// the text is expanded. Control characters become blanks, and a long text is cut.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn notify_clients(&self, text: &str) -> Result<usize, Error> {
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_MESSAGE).collect();
        let message = quote(&in_message(&line)).map_err(|_| has_nul("the message"))?;
        let (live, reply) = self.read("list-clients -F \"#{client_control_mode} #{client_name}\"").await?;
        let rows = first(&reply)?.text();
        let mut told = 0;
        for client in rows.lines().filter_map(|row| row.strip_prefix("0 ")) {
            let client = quote(client).map_err(|_| has_nul("the terminal's name"))?;
            let show = format!("display-message -d {MESSAGE_SHOWN_MS} -c {client} -- {message}");
            let reply = self.change(&live, show).await?;
            told += usize::from(reply.iter().all(|block| block.ok));
        }
        Ok(told)
    }
}

fn has_nul(what: &'static str) -> Error {
    Error::BadArgument { what, rule: "free of NUL characters" }
}

/// The session of this number as a target, quoted: tmux would take `$` for the beginning of a variable's name.
fn session_target(number: u32) -> String {
    format!("\"\\${number}:\"")
}

fn check_tag(tag: &str) -> Result<(), Error> {
    match is_plain_id(tag) {
        true => Ok(()),
        false => Err(Error::BadArgument { what: "the placeholder's tag", rule: "hexadecimal digits and hyphens" }),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Placeholder {
    id: u32,
    pid: u32,
    /// The number behind `$`.
    session: u32,
}

impl Placeholder {
    /// Reads a row; `None` when the pane is not part of the placeholder, such as a user's pane in its window. A pane
    /// without the option is known by the name of its window, because a crash may come before the option is set.
    fn read(row: &str, tag: &str, window: &str) -> Option<Placeholder> {
        let mut fields = row.splitn(6, ' ');
        let id = fields.next()?.strip_prefix('%')?.parse().ok()?;
        let session = fields.next()?.strip_prefix('$')?.parse().ok()?;
        let pid = fields.next()?.parse().ok()?;
        let (note, name, command) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = (note == tag || name == window) && (pid == 0 || is_stand_in(command));
        ours.then_some(Placeholder { id, pid, session })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tmux::{Socket, SocketOptions};

    #[test]
    fn a_users_pane_in_its_window_is_not_part_of_a_placeholder() {
        let read = |row| Placeholder::read(row, "1", "tasuki-place-00c0ffee-1");
        let empty = Some(Placeholder { id: 4, pid: 0, session: 2 });
        assert_eq!(read("%4 $2 0  tasuki-place-00c0ffee-1 ''"), empty);
        assert_eq!(read("%4 $2 0 1 renamed ''"), empty);
        assert_eq!(read("%4 $2 77 1 renamed \"exec cat\""), Some(Placeholder { id: 4, pid: 77, session: 2 }));
        assert_eq!(read("%4 $2 77 1 tasuki-place-00c0ffee-1 vim"), None);
        assert_eq!(read("%4 $2 0 2 tasuki-place-00c0ffee-2 ''"), None);
    }

    #[tokio::test]
    async fn a_text_with_a_nul_character_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let options = SocketOptions {
            socket: Socket::Path(dir.path().join("s")),
            home_tag: "00c0ffee".to_owned(),
            program: "tmux".into(),
            start_server: false,
        };
        let tmux = Tmux::start(options, tokio::sync::mpsc::channel(1).0).expect("it starts");
        for (session, name, what) in [("a\0", "B", "the session's name"), ("a", "B\0", "the variable's name")] {
            let error = tmux.variable(session, name).await.expect_err("it can't be asked");
            assert!(error.to_string().starts_with(what), "{error}");
        }
    }
}
