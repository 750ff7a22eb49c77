//! Prepares a server once a connection to it stands, and cleans up there at the end.
//!
//! Our client sits in a private session, because in a user's own session it would be noticed: by focus events, by
//! alerts that stop, by `attach -d` that throws it out. The session has no process, takes no part in sizes, and is
//! closed when it is the last one.

use super::ServerInfo;
use super::client::{CommandReplies, Connection, ConnectionEnd, ConnectionWaker, PATIENCE, nonce};
use super::guard::Names;
use super::owner;
use super::probe::{self, Version};
use super::quote::{is_plain_id, quote};
use crate::core::pane::ServerId;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// How long creation marks are kept: afterwards nobody searches for what a creation made.
const KEEP_MARKS: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a server may take to start.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// Ends the subscription of [`prepare`]; it must come before the end of our own session. tmux looks at subscriptions
/// every second, also at those of a client whose session is gone and which has not ended yet, and crashes (3.3a, in
/// `control_check_subs_session`).
pub(super) const UNSUBSCRIBE: &str = "refresh-client -B tasuki";

pub(super) fn control_client(program: &Path, socket: &Path, names: &Names) -> Command {
    let mut command = probe::tmux(program, socket);
    let session = names.session();
    command.args(["-C", "new-session", "-E", "-A", "-x", "20", "-y", "5", "-f", "ignore-size,no-output"]);
    command.args(["-s", &session, "exec cat", ";"]);
    // A user may have switched this on for all sessions; with it, the death of a control client crashes the server.
    command.args(["set-option", "-t", &format!("={session}:"), "destroy-unattached", "off"]);
    command
}

/// Takes the fence, empties the private session, removes what an earlier process left behind, subscribes to changes.
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
            let session = args.split_once(' ').map(|(_, session)| session);
            if name == "session-changed" && session == Some(&names.session()) {
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

fn read_info(text: &str) -> Option<ServerInfo> {
    let mut fields = text.splitn(4, ' ');
    let id = ServerId { pid: fields.next()?.parse().ok()?, start_time: fields.next()?.parse().ok()? };
    let version = Version::parse(fields.next()?);
    Some(ServerInfo { id, version, socket_path: fields.next()?.to_owned() })
}

fn first_lines(reply: &CommandReplies) -> impl Iterator<Item = String> {
    let lines = reply.first().filter(|block| block.ok).map(|block| block.text()).unwrap_or_default();
    lines.lines().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// tmux makes a session only with a program. Replaces its pane by a pane without a program.
fn empty_session(connection: &mut Connection, wake: &ConnectionWaker<'_>, names: &Names) -> Result<(), ConnectionEnd> {
    let session = format!("\"={}:\"", names.session());
    let reply = connection.ask(&format!("list-panes -s -t {session} -F \"#{{pane_id}} {}\"", Names::PROCESS), wake)?;
    let panes: Vec<String> = first_lines(&reply).collect();
    let programs = panes.iter().filter_map(|row| row.split_once(' ')).filter(|(_, pid)| *pid != "0");
    let kills: Vec<String> = programs.map(|(pane, _)| format!("kill-pane -t {pane}")).collect();
    if kills.is_empty() {
        return Ok(());
    }
    if kills.len() == panes.len() {
        connection.ask(&format!("split-window -d -t {session} ''"), wake)?;
    }
    connection.ask(&kills.join(" ; "), wake)?;
    Ok(())
}

fn sweep_buffers(connection: &mut Connection, wake: &ConnectionWaker<'_>, names: &Names) -> Result<(), ConnectionEnd> {
    let reply = connection.ask("list-buffers -F \"#{buffer_name}\"", wake)?;
    for name in first_lines(&reply).filter(|name| name.starts_with(&names.buffers())) {
        if let Ok(name) = quote(&name) {
            connection.ask(&format!("delete-buffer -b {name}"), wake)?;
        }
    }
    Ok(())
}

fn sweep_creations(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    names: &Names,
) -> Result<(), ConnectionEnd> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let reply = connection.ask("show-options -s", wake)?;
    for row in first_lines(&reply) {
        let Some((name, value)) = row.split_once(' ') else { continue };
        // Anybody who can set options can give them any name, and tmux would read what follows a `;` in it as a
        // command.
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

/// Moves somebody else's client, which tmux has put into our private session when its own ended, to where it was last
/// active; if there is nothing else, it is detached, as it would have been without us.
pub(super) fn move_client_out(
    connection: &mut Connection,
    wake: &ConnectionWaker<'_>,
    client: &str,
) -> Result<(), ConnectionEnd> {
    let Ok(client) = quote(client) else { return Ok(()) };
    let rows = "list-sessions -F \"#{session_activity} #{session_id} #{session_name}\"";
    let reply = connection.ask(rows, wake)?;
    let others = first_lines(&reply).filter_map(|row| {
        let mut fields = row.splitn(3, ' ');
        let (activity, id, name) = (fields.next()?.parse::<u64>().ok()?, fields.next()?, fields.next()?);
        (!name.starts_with(Names::SESSIONS)).then(|| (activity, id.to_owned()))
    });
    let line = match others.max().and_then(|(_, id)| quote(&id).ok()) {
        Some(id) => format!("switch-client -c {client} -t {id}"),
        None => format!("detach-client -t {client}"),
    };
    connection.ask(&line, wake)?;
    Ok(())
}

/// The line that ends our session when only private ones are left and the server would end without any: our session
/// must not keep alive a server that its user has left. It is decided inside the server.
pub(super) fn leave_if_alone(names: &Names) -> String {
    let others = format!("#{{S:#{{?#{{m:{}*,#{{session_name}}}},,x}}}}", Names::SESSIONS);
    let alone = format!("#{{&&:#{{==:{others},}},#{{exit-empty}}}}");
    format!("if-shell -F \"{alone}\" {{ {UNSUBSCRIBE} ; kill-session -t \"={}\" }}", names.session())
}

/// Starts a server outside the service that we may be part of: a restart of the service must end no agent.
pub(super) fn start(program: &Path, socket: &Path, names: &Names) -> Result<(), String> {
    if let Some(folder) = socket.parent() {
        use std::os::unix::fs::DirBuilderExt as _;
        // If the folder can't be made, tmux's own message says why.
        let _ = std::fs::DirBuilder::new().mode(0o700).create(folder);
    }
    owner::check(socket).map_err(|foreign| format!("{foreign}; {}", foreign.fix))?;
    let mut scoped = Command::new("systemd-run");
    scoped.args(["--user", "--scope", "--quiet", "--collect", "--"]).arg(program);
    let mut plain = Command::new(program);
    let mut said = String::new();
    for command in [&mut scoped, &mut plain] {
        command.arg("-u").arg("-S").arg(socket);
        command.args(["new-session", "-d", "-x", "20", "-y", "5", "-s", &names.session(), "exec cat"]);
        probe::strip_environment(command);
        match probe::run(command, START_PATIENCE) {
            Ok(answer) if answer.ok => return Ok(()),
            Ok(answer) => said = answer.err.lines().next().unwrap_or_default().chars().take(300).collect(),
            Err(error) => said = error.to_string(),
        }
    }
    Err(format!("no tmux server could be started: {said}"))
}
