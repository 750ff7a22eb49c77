//! What is known of a pane, and what is seen of it. A pane id alone means nothing: it is always compared together with
//! the server's identity and the pane's process.

use super::client::nonce;
use super::guard::Names;
use super::private::is_stand_in;
use super::protocol::Block;
use super::supervisor::LiveClient;
use super::{Error, Tmux};
use crate::core::pane::{PaneRef, Refusal, ServerId};
use std::collections::BTreeSet;

/// One pane of the server, as `list-panes` gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneRow {
    pub pane: PaneRef,
    /// Its program has ended and tmux keeps the pane.
    pub dead: bool,
    /// `select-pane -d`.
    pub input_off: bool,
    /// Copy mode or the like.
    pub in_mode: bool,
    /// The number behind `@`.
    pub window: u32,
    /// The number behind `$`.
    pub session: u32,
    /// Columns and rows.
    pub size: (u16, u16),
    /// The cursor's position, from 0: column and row.
    pub cursor: (u16, u16),
    pub tty: String,
    pub session_windows: u32,
    pub window_panes: u32,
    /// The name of the session that its window is in.
    pub session_name: String,
    /// The program in front, as tmux names it. From outside: not to be trusted as text.
    pub command: String,
    /// The directory of the program in front; empty when it can't be known. From outside.
    pub cwd: String,
}

/// A pane with the values of tasuki's own options.
#[derive(Debug, Clone)]
pub(super) struct Noted {
    pub(super) row: PaneRow,
    pub(super) fence: String,
    pub(super) mark: String,
    /// The creation that made the pane.
    pub(super) born: String,
    /// The claim: the home that the pane belongs to, and the agent's process.
    pub(super) claim: String,
    /// The beginning of the command that the pane was started with. From outside.
    start_command: String,
}

impl Noted {
    /// Whether the pane is in the private session of any home.
    fn is_private(&self) -> bool {
        self.row.session_name.starts_with(Names::SESSIONS)
    }

    /// Whether tasuki made the pane for itself. An empty pane, which has no process, counts as made by tasuki. A user's
    /// program in a private session does not.
    fn is_ours(&self) -> bool {
        self.row.pane.pid == 0 || self.is_private() && is_stand_in(&self.start_command)
    }
}

/// The visible screen of a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// From top to bottom, with SGR escape sequences, without trailing blanks.
    pub lines: Vec<String>,
    /// Column, from 0. Programs may hide the cursor and leave it anywhere.
    pub cursor_x: u16,
    /// Row, from 0.
    pub cursor_y: u16,
    pub width: u16,
    pub height: u16,
}

impl Tmux {
    /// All panes of the server, each once, without tasuki's own panes in private sessions and placeholders.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn list_panes(&self) -> Result<Vec<PaneRow>, Error> {
        Ok(self.list_noted("1").await?.1.into_iter().map(|noted| noted.row).collect())
    }

    /// The server that answered, and each of its panes whose program has not ended. This asks for so little because it
    /// is asked again and again: of all that tmux does for us, long rows about all panes cost it most.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn living_panes(&self) -> Result<(ServerId, BTreeSet<PaneRef>), Error> {
        let row = format!("#{{pane_id}} {} #{{pane_dead}}", Names::PROCESS);
        let (live, reply) = self.read(&format!("list-panes -a -F \"{row}\"")).await?;
        let (server, text) = (live.info.id, first(&reply)?.text());
        Ok((server, text.lines().filter_map(|row| living(row, server)).collect()))
    }

    /// The server that answered, and the panes that fulfil a condition, as in [`Tmux::list_panes`].
    pub(super) async fn list_noted(&self, condition: &str) -> Result<(ServerId, Vec<Noted>), Error> {
        let fields = Fields::new(&self.inner.shared.names);
        let (live, reply) = self.read(&format!("list-panes -a -f \"{condition}\" -F \"{}\"", fields.format)).await?;
        let block = first(&reply)?;
        let mut seen = BTreeSet::new();
        let rows = fields.rows(&block.text()).into_iter().filter_map(|row| fields.parse(&row, live.info.id));
        let mut rows: Vec<Noted> = rows.filter(|noted| !noted.is_ours()).collect();
        // If a window is in a user's session and in a private one, the row of the user's session comes first and
        // counts.
        rows.sort_by_key(Noted::is_private);
        Ok((live.info.id, rows.into_iter().filter(|noted| seen.insert(noted.row.pane.pane)).collect()))
    }

    /// One pane by its number, whatever runs in it; `None` if there is no such pane.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn facts(&self, pane: u32) -> Result<Option<PaneRow>, Error> {
        let fields = Fields::new(&self.inner.shared.names);
        let (live, reply) = self.read(&fields.question(pane)).await?;
        let row = reply.first().and_then(|block| fields.parse(&block.text(), live.info.id));
        Ok(row.map(|noted| noted.row).filter(|row| row.pane.pane == pane))
    }

    /// Asks about a pane over a given connection; `None` when the pane is gone.
    pub(super) async fn noted(&self, live: &LiveClient, pane: u32) -> Result<Option<Noted>, Error> {
        let fields = Fields::new(&self.inner.shared.names);
        let reply = live.ask(fields.question(pane)).await.map_err(|_| Error::Lost)?;
        let row = reply.first().and_then(|block| fields.parse(&block.text(), live.info.id));
        Ok(row.filter(|noted| noted.row.pane.pane == pane))
    }

    /// The visible screen of this pane's program, also while a person looks at other lines in copy mode.
    ///
    /// # Errors
    /// [`Error::Pane`] when the pane is gone or runs another process; else when no server answers.
    pub async fn capture(&self, pane: &PaneRef) -> Result<Capture, Error> {
        let fields = Fields::new(&self.inner.shared.names);
        let line = format!("{} ; capture-pane -p -e -t %{}", fields.question(pane.pane), pane.pane);
        let (live, reply) = self.read(&line).await?;
        let noted = reply.first().and_then(|block| fields.parse(&block.text(), live.info.id));
        let row = same(pane, noted.map(|noted| noted.row)).map_err(|reason| Error::Pane { pane: *pane, reason })?;
        let screen = reply.get(1).filter(|block| block.ok);
        let screen = screen.ok_or(Error::Pane { pane: *pane, reason: Refusal::PaneGone })?;
        Ok(Capture {
            lines: screen.lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect(),
            cursor_x: row.cursor.0,
            cursor_y: row.cursor.1,
            width: row.size.0,
            height: row.size.1,
        })
    }
}

/// Reads a row of [`Tmux::living_panes`]; `None` if the pane's program has ended, or if it has none.
fn living(row: &str, server: ServerId) -> Option<PaneRef> {
    let mut fields = row.split(' ');
    let pane = fields.next()?.strip_prefix('%')?.parse().ok()?;
    let pid = fields.next()?.parse().ok()?;
    (pid != 0 && fields.next()? == "0").then_some(PaneRef { server, pane, pid })
}

/// Returns the row if it is about exactly this pane, else why not.
pub(super) fn same(pane: &PaneRef, row: Option<PaneRow>) -> Result<PaneRow, Refusal> {
    match row {
        Some(row) if row.pane == *pane => Ok(row),
        // tmux 3.8 no longer says which process a dead pane had.
        Some(row) if row.dead && PaneRef { pid: pane.pid, ..row.pane } == *pane && row.pane.pid == 0 => {
            Err(Refusal::PaneDead)
        }
        Some(row) if row.pane.server == pane.server && row.pane.pane == pane.pane => Err(Refusal::PaneChanged),
        _ => Err(Refusal::PaneGone),
    }
}

/// The first answer, or the error that tmux gave instead.
pub(super) fn first(reply: &[Block]) -> Result<&Block, Error> {
    match reply.first() {
        Some(block) if block.ok => Ok(block),
        Some(block) => Err(Error::Said(block.text())),
        None => Err(Error::Said("nothing".to_owned())),
    }
}

/// One row's format. Fields that can hold anything come last, each behind a random word, so that a blank or a line end
/// in a path or in a program's name can't be taken for a separator.
struct Fields {
    nonce: String,
    format: String,
}

/// The fields that hold only plain characters, in order.
const PLAIN: &str = "#{pane_id} #{?pane_pid,#{pane_pid},0} #{pane_dead} #{pane_input_off} #{pane_in_mode} #{window_id} #{session_id} \
    #{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{session_windows} #{window_panes} #{pane_tty}";

impl Fields {
    fn new(names: &Names) -> Fields {
        let nonce = nonce();
        let free = [
            format!("#{{{}}}", names.fence()),
            format!("#{{{}}}", names.mark()),
            format!("#{{{}}}", names.born()),
            format!("#{{{}}}", Names::CLAIM),
            "#{session_name}".to_owned(),
            "#{pane_current_command}".to_owned(),
            "#{pane_current_path}".to_owned(),
            // Only compared with the short start command of our own panes.
            "#{=16:pane_start_command}".to_owned(),
        ];
        let format = format!("{nonce}{PLAIN}|{nonce}|{}", free.join(&format!("|{nonce}|")));
        Fields { nonce, format }
    }

    fn question(&self, pane: u32) -> String {
        format!("display-message -p -t %{pane} \"{}\"", self.format)
    }

    /// Splits an answer into rows. A row may be several lines long.
    fn rows(&self, text: &str) -> Vec<String> {
        text.split(&format!("\n{}", self.nonce)).map(str::to_owned).collect()
    }

    fn parse(&self, row: &str, server: ServerId) -> Option<Noted> {
        let row = row.strip_prefix(&self.nonce).unwrap_or(row);
        let separator = format!("|{}|", self.nonce);
        let mut parts = row.split(&separator);
        let plain: Vec<&str> = parts.next()?.split(' ').collect();
        let [id, pid, dead, off, mode, window, session, width, height, x, y, windows, panes, tty] = plain[..] else {
            return None;
        };
        let mut free = || parts.next().map(str::to_owned);
        let (fence, mark, born, claim) = (free()?, free()?, free()?, free()?);
        let pane = PaneRef { server, pane: id.strip_prefix('%')?.parse().ok()?, pid: pid.parse().ok()? };
        let number = |text: &str| text.parse::<u32>().unwrap_or(0);
        let cells = |text: &str| text.parse::<u16>().unwrap_or(0);
        let row = PaneRow {
            pane,
            dead: dead != "0",
            input_off: off != "0",
            in_mode: mode != "0",
            window: number(window.trim_start_matches('@')),
            session: number(session.trim_start_matches('$')),
            size: (cells(width), cells(height)),
            cursor: (cells(x), cells(y)),
            tty: tty.to_owned(),
            session_windows: number(windows),
            window_panes: number(panes),
            session_name: free()?,
            command: free()?,
            cwd: free()?,
        };
        Some(Noted { row, fence, mark, born, claim, start_command: free()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ServerId = ServerId { pid: 9, start_time: 1 };

    #[test]
    fn line_ends_and_separators_in_paths_do_not_make_rows() {
        let fields = Fields::new(&Names::new("00c0ffee"));
        let n = &fields.nonce;
        let row = |id: &str, path: &str| {
            format!(
                "{n}{id} 7 0 0 1 @2 $3 80 24 1 2 1 1 /dev/pts/1|{n}|f|{n}|m.P|{n}||{n}||{n}|s x|{n}|a | b|{n}|{path}|{n}|"
            )
        };
        let text = format!("{}\n{}", row("%1", "/tmp/x\n%9 7 0 0 0\n||"), row("%4", ""));
        let rows: Vec<_> = fields.rows(&text).iter().filter_map(|row| fields.parse(row, SERVER)).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].row.cwd, "/tmp/x\n%9 7 0 0 0\n||");
        assert_eq!((rows[0].row.session_name.as_str(), rows[0].row.command.as_str()), ("s x", "a | b"));
        assert_eq!((rows[0].fence.as_str(), rows[0].mark.as_str()), ("f", "m.P"));
        assert!(rows[0].row.in_mode && !rows[0].row.dead);
        assert_eq!(rows[1].row.pane, PaneRef { server: SERVER, pane: 4, pid: 7 });
    }

    #[test]
    fn a_missing_pane_gives_no_row() {
        let fields = Fields::new(&Names::new("00c0ffee"));
        let n = &fields.nonce;
        assert!(fields.parse(&format!("{n}             |{n}|f|{n}||{n}||{n}||{n}||{n}||{n}||{n}|"), SERVER).is_none());
    }

    #[test]
    fn an_id_that_came_back_is_not_the_pane() {
        let fields = Fields::new(&Names::new("00c0ffee"));
        let n = &fields.nonce;
        let text =
            format!("{n}%1 7 0 0 0 @2 $3 80 24 1 2 1 1 /dev/pts/1|{n}|f|{n}||{n}||{n}||{n}|s|{n}|sh|{n}|/|{n}|sh");
        let row = fields.parse(&text, SERVER).map(|noted| noted.row);
        let meant = |server, pid| PaneRef { server, pane: 1, pid };
        assert!(same(&meant(SERVER, 7), row.clone()).is_ok());
        assert_eq!(same(&meant(SERVER, 8), row.clone()), Err(Refusal::PaneChanged));
        let former = ServerId { pid: 9, start_time: 0 };
        assert_eq!(same(&meant(former, 7), row), Err(Refusal::PaneGone));
        assert_eq!(same(&meant(SERVER, 7), None), Err(Refusal::PaneGone));
    }
}
