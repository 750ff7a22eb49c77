//! Prepares a server once our client is attached to it, and starts a server if none runs.
//!
//! Our client has a private session. In a user's session it would disturb: programs there would get focus events,
//! alerts would stop, and the user's `attach -d` would detach our client. The private session has no process, does not
//! influence the sizes of windows, and is closed when only private sessions are left. `private` moves out what lands in
//! it.

use super::ServerInfo;
use super::client::{Connection, ConnectionEnd, ConnectionWaker, PATIENCE, nonce};
use super::guard::Names;
use super::owner;
use super::private::{STAND_IN, empty_session, is_stand_in, rows};
use super::probe;
use super::quote::{is_plain_id, quote};
use super::version::Version;
use crate::core::pane::ServerId;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// How long creation marks are kept: afterwards nobody searches for what a creation made.
const KEEP_MARKS: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a server may take to start.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// The size of our session, which is tmux's default for sessions without a terminal. A user's window may be made in our
/// session.
const SIZE: [&str; 4] = ["-x", "80", "-y", "24"];

/// The options of our session. With `destroy-unattached`, which a user may have switched on for all sessions, the death
/// of a control client crashes the server. With `detach-on-destroy` off, our client gets another session when a user
/// kills ours. Until the client ends, the server evaluates its subscription every second, and crashes if the client has
/// no session.
const OPTIONS: [[&str; 2]; 2] = [["destroy-unattached", "off"], ["detach-on-destroy", "off"]];

pub(super) fn control_client(program: &Path, socket: &Path, names: &Names) -> Command {
    let mut command = probe::tmux(program, socket);
    let (session, target) = (names.session(), format!("={}:", names.session()));
    command.args(["-C", "new-session", "-E", "-A"]).args(SIZE).args(["-f", "ignore-size,no-output"]);
    command.args(["-s", &session, STAND_IN]);
    for option in OPTIONS {
        command.args([";", "set-option", "-t", &target]).args(option);
    }
    command
}

/// Takes the fence, empties the private session, removes buffers and old creation marks of earlier processes, and
/// subscribes to changes of panes. Returns the server and our fence.
pub(super) fn prepare(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    names: &Names,
) -> Result<(ServerInfo, String), ConnectionEnd> {
    let fence = nonce();
    let ask = format!(
        "set-option -s {} {fence} ; display-message -p \"#{{pid}} #{{start_time}} #{{version}} #{{socket_path}}\"",
        names.fence()
    );
    let reply = connection.ask(&ask, wake)?;
    let info = reply.last().and_then(|block| read_info(&block.text()));
    let info = info.ok_or_else(|| ConnectionEnd::Gone("tmux's answer about itself can't be read".to_owned()))?;
    empty_session(connection, wake, names)?;
    sweep_buffers(connection, wake, names)?;
    sweep_creations(connection, wake, names)?;
    let all = "tasuki::#{S:#{W:#{P:#{pane_id}.#{pane_pid}.#{pane_dead} }}}";
    connection.ask(&format!("refresh-client -B \"{all}\""), wake)?;
    Ok((info, fence))
}

/// Waits until our client is in its session. The server reads a client's lines as soon as it can, even before it has
/// carried out the command that started the client; until then there is no session, and lines fail.
pub(super) fn await_session(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    names: &Names,
) -> Result<(), ConnectionEnd> {
    let until = Instant::now() + PATIENCE;
    loop {
        while let Some((name, args)) = connection.next_notice() {
            let Some((id, session)) = args.split_once(' ').filter(|_| name == "session-changed") else { continue };
            if session == names.session() || take_back(connection, wake, names, id)? {
                connection.enter(id);
                return Ok(());
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ConnectionEnd::Silent);
        }
        connection.serve_once(wake, left)?;
    }
}

/// Gives our new session its name back, if a user's hook has renamed it. Returns false if the session is not ours,
/// because a hook has moved our client into another one.
fn take_back(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    names: &Names,
    id: &str,
) -> Result<bool, ConnectionEnd> {
    let Ok(target) = quote(id) else { return Ok(false) };
    let reply = connection.ask(&format!("list-panes -s -t {target} -F \"#{{pane_start_command}}\""), wake)?;
    let panes: Vec<String> = rows(&reply, 0).collect();
    if panes.len() != 1 || !is_stand_in(&panes[0]) {
        return Ok(false);
    }
    let mut line = format!("rename-session -t {target} -- {}", names.session());
    // The command line that made the session could not set these options, because the session had another name.
    for option in OPTIONS {
        line.push_str(&format!(" ; set-option -t {target} {} {}", option[0], option[1]));
    }
    let reply = connection.ask(&line, wake)?;
    Ok(reply.iter().all(|block| block.ok))
}

fn read_info(text: &str) -> Option<ServerInfo> {
    let mut fields = text.splitn(4, ' ');
    let id = ServerId { pid: fields.next()?.parse().ok()?, start_time: fields.next()?.parse().ok()? };
    let version = Version::parse(fields.next()?);
    Some(ServerInfo { id, version, socket_path: fields.next()?.to_owned() })
}

fn sweep_buffers(connection: &mut Connection, wake: &ConnectionWaker<'_>, names: &Names) -> Result<(), ConnectionEnd> {
    let reply = connection.ask("list-buffers -F \"#{buffer_name}\"", wake)?;
    for name in rows(&reply, 0).filter(|name| name.starts_with(&names.buffers())) {
        if let Ok(name) = quote(&name) {
            connection.ask(&format!("delete-buffer -b {name}"), wake)?;
        }
    }
    Ok(())
}

/// Removes old creation marks.
pub(super) fn sweep_creations(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    names: &Names,
) -> Result<(), ConnectionEnd> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let reply = connection.ask("show-options -s", wake)?;
    for row in rows(&reply, 0) {
        let Some((name, value)) = row.split_once(' ') else { continue };
        // Anybody who can set options can give them any name. If a name contained a `;`, tmux would read the rest of it
        // as a command.
        if !name.strip_prefix(&names.made_prefix()).is_some_and(is_plain_id) {
            continue;
        }
        let made = Duration::from_secs(value.trim_matches('"').parse().unwrap_or(0));
        if made + KEEP_MARKS < now {
            connection.ask(&format!("set-option -s -u {name}"), wake)?;
        }
    }
    Ok(())
}

/// Starts a server. If we are part of a service, the server is started outside it, if possible, so that a restart of
/// the service ends no agent.
pub(super) fn start(program: &Path, socket: &Path, names: &Names) -> Result<(), String> {
    if let Some(folder) = socket.parent() {
        use std::os::unix::fs::DirBuilderExt as _;
        // If the folder can't be made, tmux's own message says why.
        let _ = std::fs::DirBuilder::new().mode(0o700).create(folder);
    }
    owner::check(socket).map_err(|unasked| format!("{unasked}; {}", unasked.fix()))?;
    let mut scoped = Command::new("systemd-run");
    scoped.args(["--user", "--scope", "--quiet", "--collect", "--"]).arg(program);
    let mut plain = Command::new(program);
    let mut said = String::new();
    for command in [&mut scoped, &mut plain] {
        command.arg("-u").arg("-S").arg(socket);
        command.args(["new-session", "-d"]).args(SIZE).args(["-s", &names.session(), STAND_IN]);
        probe::strip_environment(command);
        match probe::run(command, START_PATIENCE) {
            Ok(answer) if answer.ok => return Ok(()),
            Ok(answer) => said = answer.err.lines().next().unwrap_or_default().chars().take(300).collect(),
            Err(error) => said = error.to_string(),
        }
    }
    Err(format!("no tmux server could be started: {said}"))
}
