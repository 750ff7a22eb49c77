//! Our private session, and how users' programs and terminals that land in it are moved out.
//!
//! To tmux this is a session like any other, and the newest one right after we connect. So a command without a target
//! may act on it, and a user's windows, panes and terminals may land there. tasuki moves them to where they would be
//! without it: to the user's session that was active last. Our session is never ended while a program runs in it.

use super::client::{CommandReplies, Connection, ConnectionEnd, ConnectionWaker};
use super::guard::Names;
use super::probe::WINDOW_SIZE;
use super::quote::quote;
use super::server_lock::ServerLock;
use std::collections::BTreeMap;
use std::time::Duration;

/// The program that our session, or a placeholder window, is made with: tmux makes neither without one.
pub(super) const STAND_IN: &str = "exec cat";
/// Ends the subscription to the panes of all sessions; it must come before the end of our own session. tmux evaluates
/// subscriptions every second. If a client has lost its session and has not ended yet, that crashes tmux (3.3a, in
/// `control_check_subs_session`).
pub(super) const UNSUBSCRIBE: &str = "refresh-client -B tasuki";
/// The most rounds in which users' programs are looked for in our session and moved out.
const LOOKS: u32 = 4;
/// How long to wait for another home that is connecting. After that, changes are made without the lock.
pub(super) const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Whether tmux says of a pane that it was started with our stand-in.
pub(super) fn is_stand_in(start_command: &str) -> bool {
    start_command.trim_matches('"') == STAND_IN
}

/// Replaces the stand-in by a pane without a program, and moves out users' programs and terminals that came in while no
/// sidecar ran.
pub(super) fn empty_session(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    names: &Names,
) -> Result<(), ConnectionEnd> {
    let session = format!("\"={}:\"", names.session());
    let row = format!("#{{pane_id}} {} #{{pane_start_command}}", Names::PROCESS);
    let reply = connection.ask(&format!("list-panes -s -t {session} -F \"{row}\""), wake)?;
    let panes: Vec<String> = rows(&reply, 0).collect();
    let fields = panes.iter().filter_map(|row| {
        let mut fields = row.splitn(3, ' ');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let stand_ins: Vec<_> = fields.filter(|(_, pid, command)| *pid != "0" && is_stand_in(command)).collect();
    if !stand_ins.is_empty() && stand_ins.len() == panes.len() {
        connection.ask(&format!("split-window -d -t {session} ''"), wake)?;
    }
    for (pane, pid, _) in stand_ins {
        let same = format!("#{{==:{},{pid}}}", Names::PROCESS);
        connection.ask(&format!("if-shell -F -t {pane} \"{same}\" {{ kill-pane -t {pane} }}"), wake)?;
    }
    move_programs_out(connection, wake, names, || None)?;
    move_clients_out(connection, wake, names)
}

/// Moves out the terminals that came in while no sidecar ran.
fn move_clients_out(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    names: &Names,
) -> Result<(), ConnectionEnd> {
    let list = format!("list-clients -t \"={}\" -F \"#{{client_pid}} #{{client_name}}\"", names.session());
    let (reply, own) = (connection.ask(&list, wake)?, connection.pid().to_string());
    for row in rows(&reply, 0) {
        if let Some((_, client)) = row.split_once(' ').filter(|(pid, _)| *pid != own) {
            move_client_out(connection, wake, names, client)?;
        }
    }
    Ok(())
}

/// Moves every program in our session to the user's session that was active last; if there is none, tasuki makes one.
/// `lock` takes the lock between homes if the caller does not hold it, because tmux notifies all control clients of
/// each move (see `server_lock`).
///
/// Meanwhile nothing may be sent that ends our session. After each command that changes a session's current window,
/// tmux tells control clients of the change a moment later, and crashes if the session has ended by then (up to 3.7, in
/// `control_notify_session_window_changed`).
pub(super) fn move_programs_out(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    names: &Names,
    lock: impl Fn() -> Option<ServerLock>,
) -> Result<(), ConnectionEnd> {
    let mut held = None;
    // The first pane of the session that this call has made, if any.
    let mut made: Option<String> = None;
    for _ in 0..LOOKS {
        let reply = connection.ask(&list_contents(names), wake)?;
        let contents = Contents::read(rows(&reply, 0));
        if !contents.has_programs() {
            if let Some(pane) = &made {
                // The program has ended before it was moved.
                connection.ask(&format!("kill-pane -t {pane}"), wake)?;
            }
            return Ok(());
        }
        held = held.or_else(&lock);
        if !contents.keeps_a_pane() {
            if contents.windows.values().any(|window| window.has_empty_pane) {
                // A user has linked our own window into another session and split it there. That is left as it is.
                return Ok(());
            }
            // Without a pane of its own, our session would end when the last program is moved out.
            let reply = connection.ask(&format!("split-window -d -t \"={}:\" ''", names.session()), wake)?;
            if reply.iter().all(|block| block.ok) {
                continue;
            }
            return Ok(());
        }
        let reply = connection.ask(SESSIONS, wake)?;
        let users = latest(&Session::read_all(rows(&reply, 0))).map(|session| session.id.clone());
        let session = match users {
            Some(session) => session,
            None => {
                let Some((session, pane)) = make_session(connection, wake)? else { return Ok(()) };
                made = Some(pane);
                session
            }
        };
        for line in contents.moves(names, &session) {
            connection.ask(&line, wake)?;
        }
        if let Some(pane) = &made {
            let line = format!("if-shell -F -t {pane} \"#{{!=:#{{session_windows}},1}}\" {{ kill-pane -t {pane} }}");
            connection.ask(&line, wake)?;
        }
        tracing::info!(session, "moved a user's programs out of tasuki's own tmux session");
    }
    Ok(())
}

/// Makes a session into which programs can be moved; returns its id and its only pane.
fn make_session(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
) -> Result<Option<(String, String)>, ConnectionEnd> {
    if rows(&connection.ask(WINDOW_SIZE, wake)?, 0).any(|size| size == "manual") {
        return Ok(None);
    }
    let make = format!("new-session -d -E -P -F \"#{{session_id}} #{{pane_id}}\" \"{STAND_IN}\"");
    let reply = connection.ask(&make, wake)?;
    let made = rows(&reply, 0).next().and_then(|row| {
        let (session, pane) = row.split_once(' ')?;
        Some((session.to_owned(), pane.to_owned()))
    });
    let Some((session, pane)) = made else { return Ok(None) };
    if let Ok(target) = quote(&session) {
        // Nobody is attached to this session, so it must not be destroyed before programs are moved there.
        connection.ask(&format!("set-option -t {target} destroy-unattached off"), wake)?;
    }
    Ok(Some((session, pane)))
}

/// Asks for our session's panes.
fn list_contents(names: &Names) -> String {
    let row = format!("#{{pane_id}} #{{window_id}} {} #{{window_linked}}", Names::PROCESS);
    format!("list-panes -s -t \"={}:\" -F \"{row}\"", names.session())
}

/// The panes of our session, by window.
#[derive(Debug, Default, PartialEq, Eq)]
struct Contents {
    windows: BTreeMap<String, WindowContents>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct WindowContents {
    /// Panes with a program, which is a user's.
    programs: Vec<String>,
    has_empty_pane: bool,
    /// The window is in another session too.
    is_linked: bool,
}

impl Contents {
    fn read(rows: impl Iterator<Item = String>) -> Contents {
        let mut contents = Contents::default();
        for row in rows {
            let fields: Vec<&str> = row.split(' ').collect();
            let [pane, window, pid, linked] = fields[..] else { continue };
            let window = contents.windows.entry(window.to_owned()).or_default();
            window.is_linked |= linked == "1";
            if pid == "0" {
                window.has_empty_pane = true;
            } else {
                window.programs.push(pane.to_owned());
            }
        }
        contents
    }

    fn has_programs(&self) -> bool {
        self.windows.values().any(|window| !window.programs.is_empty())
    }

    /// Whether a pane stays in our session if everything else goes.
    fn keeps_a_pane(&self) -> bool {
        let stays =
            |window: &WindowContents| window.has_empty_pane && (window.programs.is_empty() || !window.is_linked);
        self.windows.values().any(stays)
    }

    /// The lines that move the programs into `session`; each does nothing if the window is not in our session any more.
    fn moves(&self, names: &Names, session: &str) -> Vec<String> {
        let Ok(to) = quote(&format!("{session}:")) else { return Vec::new() };
        let ours = names.session();
        let mut lines = Vec::new();
        for (id, window) in self.windows.iter().filter(|(_, window)| !window.programs.is_empty()) {
            let guard = format!("\"#{{==:#{{session_name}} #{{window_id}},{ours} {id}}}\"");
            let target = format!("\"={ours}:{id}\"");
            if window.is_linked {
                lines.push(format!("if-shell -F -t {target} {guard} {{ unlink-window -t {target} }}"));
            } else if !window.has_empty_pane {
                lines.push(format!("if-shell -F -t {target} {guard} {{ move-window -d -s {target} -t {to} }}"));
            } else {
                // Only `move-window` makes tmux size the window for its new session.
                lines.extend(window.programs.iter().map(|pane| {
                    let alone = format!("break-pane -d -s {pane} -t \"={ours}:\"");
                    format!("if-shell -F -t {pane} {guard} {{ {alone} ; move-window -d -s {pane} -t {to} }}")
                }));
            }
        }
        lines
    }
}

/// Asks for all sessions.
const SESSIONS: &str = "list-sessions -F \"#{session_activity} #{session_id} #{session_name}\"";

#[derive(Debug, Clone, PartialEq, Eq)]
struct Session {
    activity: u64,
    id: String,
    name: String,
}

impl Session {
    fn read_all(rows: impl Iterator<Item = String>) -> Vec<Session> {
        let read = |row: String| {
            let mut fields = row.splitn(3, ' ');
            let activity = fields.next()?.parse().ok()?;
            Some(Session { activity, id: fields.next()?.to_owned(), name: fields.next()?.to_owned() })
        };
        rows.filter_map(read).collect()
    }

    fn is_private(&self) -> bool {
        self.name.starts_with(Names::SESSIONS)
    }
}

/// The user's session that was active last.
fn latest(sessions: &[Session]) -> Option<&Session> {
    sessions.iter().filter(|session| !session.is_private()).max_by_key(|session| (session.activity, &session.id))
}

/// The session into which another client is moved that has come into our session, `ours`, from the session named
/// `left`. If its user is stepping through the sessions, which tmux sorts by name, this is the next session in the same
/// direction; else the user's session that was active last.
fn way_out<'a>(sessions: &'a [Session], ours: &str, left: &str) -> Option<&'a Session> {
    let mut others: Vec<&Session> = sessions.iter().filter(|session| !session.is_private()).collect();
    others.sort_by(|one, other| one.name.cmp(&other.name));
    let behind = others.iter().position(|session| session.name.as_str() > ours).unwrap_or(0);
    let next = others.get(behind)?;
    let previous = others[(behind + others.len() - 1) % others.len()];
    match left {
        left if left == previous.name => Some(next),
        left if left == next.name => Some(previous),
        _ => latest(sessions),
    }
}

/// Acts on a notice about sessions: no other client stays in our session, our client stays in no other session, and our
/// session keeps its name.
///
/// # Errors
/// The connection has ended, or must end because our session has ended and tmux has put our client into another
/// session. There it would count as somebody who looks at a user's window.
pub(super) fn react(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    names: &Names,
    (notice, args): (&str, &str),
    lock: impl Fn() -> Option<ServerLock>,
) -> Result<(), ConnectionEnd> {
    match notice {
        "client-session-changed" => {
            if let Some(client) = client_in_our_session(args, &names.session(), connection.pid()) {
                move_client_out(connection, wake, names, client)?;
            }
        }
        "session-changed" if args.split_once(' ').is_some_and(|(_, session)| session != names.session()) => {
            connection.ask(UNSUBSCRIBE, wake)?;
            return Err(ConnectionEnd::Gone("its session was ended".to_owned()));
        }
        "session-renamed" => {
            let Ok(session) = quote(connection.session()) else { return Ok(()) };
            let _held = lock();
            connection.ask(&keep_name(names, &session), wake)?;
        }
        _ => {}
    }
    Ok(())
}

/// The client that `%client-session-changed` names, if it is in our session now and is not ours.
fn client_in_our_session<'a>(args: &'a str, session: &str, our_pid: u32) -> Option<&'a str> {
    let mut fields = args.splitn(3, ' ');
    let (client, _, name) = (fields.next()?, fields.next()?, fields.next()?);
    (name == session && client != format!("client-{our_pid}")).then_some(client)
}

/// Moves another client out of our private session. tmux puts a client there when the client's session has ended, or
/// when its user steps through the sessions. If no user's session is left, the client is detached, as it would have
/// been without us.
fn move_client_out(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    names: &Names,
    client: &str,
) -> Result<(), ConnectionEnd> {
    let Ok(target) = quote(client) else { return Ok(()) };
    // No session's name has a colon.
    let row = "#{client_session}:#{client_last_session}:#{client_name}";
    let reply = connection.ask(&format!("{SESSIONS} ; list-clients -F \"{row}\""), wake)?;
    let sessions = Session::read_all(rows(&reply, 0));
    let clients: Vec<String> = rows(&reply, 1).collect();
    let fields = clients.iter().map(|row| row.splitn(3, ':').collect::<Vec<_>>());
    let at = fields.filter_map(|fields| <[&str; 3]>::try_from(fields).ok()).find(|[.., name]| *name == client);
    // The client may have left our session meanwhile, or ended.
    let Some([_, left, _]) = at.filter(|[session, ..]| *session == names.session()) else { return Ok(()) };
    let line = match way_out(&sessions, &names.session(), left).and_then(|session| quote(&session.id).ok()) {
        Some(id) => format!("switch-client -c {target} -t {id}"),
        None => format!("detach-client -t {target}"),
    };
    connection.ask(&line, wake)?;
    Ok(())
}

/// Condition in our session: no program runs in it.
const NO_PROGRAM: &str = "#{==:#{W:#{P:#{?pane_pid,x,}}},}";

/// What [`end_session`] prints when it ends the session.
pub(super) const ENDS: &str = "tasuki-ends";

/// The line that ends our session if `condition` holds and no program runs in it, after the commands in `before`. The
/// server itself checks this as it ends the session. `detach-on-destroy` makes our client end with its session instead
/// of moving into another one.
pub(super) fn end_session(names: &Names, condition: &str, before: &str) -> String {
    let (session, condition) = (names.session(), format!("#{{&&:{condition},{NO_PROGRAM}}}"));
    let end = format!("set-option -t \"={session}:\" detach-on-destroy on ; kill-session -t \"={session}\"");
    let tell = format!("display-message -p {ENDS}");
    format!("if-shell -F -t \"={session}:\" \"{condition}\" {{ {UNSUBSCRIBE} ; {before}{tell} ; {end} }}")
}

/// The line that ends our session if only private sessions are left and the server exits once it has no session: our
/// session must not keep alive a server that its user has left.
pub(super) fn leave_if_alone(names: &Names) -> String {
    let others = format!("#{{S:#{{?#{{m:{}*,#{{session_name}}}},,x}}}}", Names::SESSIONS);
    end_session(names, &format!("#{{&&:#{{==:{others},}},#{{exit-empty}}}}"), "")
}

/// The line that gives our session its name back, because a user's `rename-session` without a target may have renamed
/// it. The line names our session by its id, which no other session ever has: ours may have ended meanwhile, and tmux
/// may have put our client into a user's session, which must keep its name. tmux does nothing if the name is the same.
fn keep_name(names: &Names, id: &str) -> String {
    format!("rename-session -t {id} -- {}", names.session())
}

/// The lines of a request's answer number `number`, from 0; none if that answer is an error.
pub(super) fn rows(reply: &CommandReplies, number: usize) -> impl Iterator<Item = String> {
    let lines = reply.get(number).filter(|block| block.ok).map(|block| block.text()).unwrap_or_default();
    lines.lines().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
#[path = "private_tests.rs"]
mod tests;
