//! Keeps a session alive while its only program is replaced, shows messages in people's status lines, and reads a
//! session's variables.

use super::guard::Names;
use super::pane::{first, same};
use super::private::{STAND_IN, is_stand_in};
use super::probe::{MANUAL_SIZE, WINDOW_SIZE};
use super::protocol::Block;
use super::quote::{in_message, is_plain_id, quote};
use super::{Error, Tmux};
use crate::core::pane::PaneRef;

/// Longest message for a status line, in characters.
const MAX_MESSAGE: usize = 400;
/// How long the message is shown, in milliseconds.
const MESSAGE_SHOWN_MS: u32 = 5_000;

/// Where a successor's window is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneLocation {
    pub session: String,
    /// Columns and rows of the pane.
    pub size: (u16, u16),
    /// Whether the session has a placeholder window.
    pub held: bool,
}

impl Tmux {
    /// Tells where a pane is, and makes sure that its session outlives it: if the pane is the last one there, an empty
    /// window is added, once for each tag.
    ///
    /// # Errors
    /// [`Error::Pane`] when the pane is gone; [`Error::BadArgument`] for a tag that is not hexadecimal digits and
    /// hyphens; else when no server answers.
    pub async fn hold_placeholder(&self, pane: &PaneRef, tag: &str) -> Result<PaneLocation, Error> {
        let window = self.placeholder_window(tag)?;
        // The successor needs a window too.
        self.check_sizes().await?;
        let live = self.live().await?;
        let row = self.noted(&live, pane.pane).await?.map(|noted| noted.row);
        let row = same(pane, row).map_err(|reason| Error::Pane { pane: *pane, reason })?;
        let place = |held| PaneLocation { session: row.session_name.clone(), size: row.size, held };
        if !self.placeholder_panes(&window).await?.is_empty() {
            self.empty_placeholders(&window).await?;
            return Ok(place(true));
        }
        if row.session_windows > 1 || row.window_panes > 1 {
            return Ok(place(false));
        }
        let guard = self.inner.shared.names.same_pane(&live.fence, pane);
        let make = format!("new-window -d -t \"${}:\" -n {window} \"{STAND_IN}\"", row.session).replace('$', "\\$");
        let reply = self.change(&live, format!("if-shell -F -t {pane} \"{guard}\" {{ {make} }}")).await?;
        if let Some(error) = reply.iter().find(|block| !block.ok) {
            return Err(Error::Said(error.text()));
        }
        self.empty_placeholders(&window).await?;
        Ok(place(!self.placeholder_panes(&window).await?.is_empty()))
    }

    /// Refuses if this server must not make a window.
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

    /// Takes the placeholder away again, wherever it is; nothing happens if there is none. A pane that somebody else
    /// has opened in its window stays.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a tag that is not hexadecimal digits and hyphens; else when no server answers.
    pub async fn drop_placeholder(&self, tag: &str) -> Result<(), Error> {
        let window = self.placeholder_window(tag)?;
        for pane in self.placeholder_panes(&window).await? {
            self.kill_placeholder(&pane).await?;
        }
        Ok(())
    }

    fn placeholder_window(&self, tag: &str) -> Result<String, Error> {
        if !is_plain_id(tag) {
            return Err(Error::BadArgument { what: "the place's tag", rule: "hexadecimal digits and hyphens" });
        }
        Ok(self.inner.shared.names.placeholder(tag))
    }

    async fn placeholder_panes(&self, window: &str) -> Result<Vec<Placeholder>, Error> {
        let row = format!("#{{pane_id}} {} #{{window_name}} #{{pane_start_command}}", Names::PROCESS);
        let (_, reply) = self.read(&format!("list-panes -a -F \"{row}\"")).await?;
        let text = first(&reply)?.text();
        Ok(text.lines().filter_map(|row| Placeholder::read(row, window)).collect())
    }

    /// Replaces the stand-in program by a pane without a program, so that nobody can type into it by mistake.
    async fn empty_placeholders(&self, window: &str) -> Result<(), Error> {
        let panes = self.placeholder_panes(window).await?;
        let empty = panes.iter().any(|pane| pane.pid == 0);
        for pane in panes.iter().filter(|pane| pane.pid != 0) {
            if !empty {
                let live = self.live().await?;
                self.change(&live, format!("split-window -d -t %{} ''", pane.id)).await?;
            }
            self.kill_placeholder(pane).await?;
        }
        Ok(())
    }

    async fn kill_placeholder(&self, pane: &Placeholder) -> Result<(), Error> {
        let live = self.live().await?;
        let same = format!("#{{==:{},{}}}", Names::PROCESS, pane.pid);
        let guard = format!("#{{&&:{},{same}}}", self.inner.shared.names.fenced(&live.fence));
        let id = pane.id;
        self.change(&live, format!("if-shell -F -t %{id} \"{guard}\" {{ kill-pane -t %{id} }}")).await?;
        Ok(())
    }

    /// The value that a variable will have in new windows of a session, whether the session exists or not; `None` if
    /// the variable has no value.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn variable(&self, session: &str, name: &str) -> Result<Option<String>, Error> {
        let quoted = |text: &str| quote(text).map_err(|_| bad_text());
        let (target, name_of) = (quoted(&format!("={session}"))?, quoted(name)?);
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

    /// Shows a text in the status line of each terminal that is attached, and returns how many there are. The text is
    /// shown as it is: nothing in it is expanded.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn notify_clients(&self, text: &str) -> Result<usize, Error> {
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_MESSAGE).collect();
        let message = quote(&in_message(&line)).map_err(|_| bad_text())?;
        let (live, reply) = self.read("list-clients -F \"#{client_control_mode} #{client_name}\"").await?;
        let rows = first(&reply)?.text();
        let mut told = 0;
        for client in rows.lines().filter_map(|row| row.strip_prefix("0 ")) {
            let client = quote(client).map_err(|_| bad_text())?;
            let show = format!("display-message -d {MESSAGE_SHOWN_MS} -c {client} -- {message}");
            let reply = self.change(&live, show).await?;
            told += usize::from(reply.iter().all(|block| block.ok));
        }
        Ok(told)
    }
}

fn bad_text() -> Error {
    Error::BadArgument { what: "the message", rule: "free of NUL characters" }
}

#[derive(Debug, PartialEq, Eq)]
struct Placeholder {
    id: u32,
    pid: u32,
}

impl Placeholder {
    /// Reads a row; `None` when the pane is not a placeholder's, though it may be in the placeholder's window.
    fn read(row: &str, window: &str) -> Option<Placeholder> {
        let mut fields = row.splitn(4, ' ');
        let id = fields.next()?.strip_prefix('%')?.parse().ok()?;
        let pid = fields.next()?.parse().ok()?;
        let (name, command) = (fields.next()?, fields.next()?);
        let ours = name == window && (pid == 0 || is_stand_in(command));
        ours.then_some(Placeholder { id, pid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_panes_are_a_placeholders() {
        let read = |row| Placeholder::read(row, "tasuki-place-00c0ffee-1");
        assert_eq!(read("%4 0 tasuki-place-00c0ffee-1 ''"), Some(Placeholder { id: 4, pid: 0 }));
        assert_eq!(read("%4 77 tasuki-place-00c0ffee-1 \"exec cat\""), Some(Placeholder { id: 4, pid: 77 }));
        assert_eq!(read("%4 77 tasuki-place-00c0ffee-1 vim"), None);
        assert_eq!(read("%4 0 tasuki-place-00c0ffee-2 ''"), None);
    }
}
