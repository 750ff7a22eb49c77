//! Checks the tmux program and the server that the sidecar uses, and says how that server was chosen.

use super::check::Check;
use super::ground::DoctorFacts;
use crate::child;
use crate::core::text::shell_word;
use crate::files;
use crate::process;
use crate::tmux::examine::{self, Program, Server};
use crate::tmux::{self, Socket, SocketPathTooLong, Version};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where the program and the server are.
#[derive(Debug, Clone)]
pub(super) struct TmuxSetup {
    pub(super) program: Option<PathBuf>,
    pub(super) socket: PathBuf,
    /// How this server was chosen.
    chosen: &'static str,
}

struct Facts {
    place: TmuxSetup,
    whose: &'static str,
    program: Program,
    /// None without a tmux program that is new enough.
    server: Option<Server>,
    /// Whether that server ends when nobody is attached; none if it did not tell.
    ends_unattached: Option<bool>,
    may_start: bool,
    /// The server of the pane in which doctor runs.
    own: Option<PathBuf>,
    /// A folder or link through which others could change the home.
    open_way: Option<PathBuf>,
}

pub(super) fn look(ground: &DoctorFacts) -> Vec<Check> {
    let place = place(ground);
    let program = examine::program(place.program.as_deref());
    let is_fit = matches!(&program, Program::There(_, version) if *version >= Version::MINIMUM);
    let server = place.program.as_deref().filter(|_| is_fit).map(|program| examine::server(program, &place.socket));
    let asked = place.program.as_deref().filter(|_| matches!(server, Some(Server::Answers { .. })));
    let ends_unattached = asked.and_then(|program| examine::ends_unattached(program, &place.socket));
    let facts = Facts {
        whose: ground.whose(),
        program,
        server,
        ends_unattached,
        may_start: ground.config().tmux_start,
        own: examine::socket_around().filter(|path| path.is_absolute()),
        open_way: ground.open_way(),
        place,
    };
    judge(&facts)
}

/// The server that was named; else the one that the running sidecar has chosen, or that a sidecar started here would
/// choose.
pub(super) fn place(ground: &DoctorFacts) -> TmuxSetup {
    let of_sidecar = || ground.process.and_then(process::argv).and_then(|argv| tmux_argument(&argv));
    let argument = ground.asked.tmux.clone().or_else(of_sidecar);
    let variable = ground.variable("TASUKI_TMUX").and_then(|name| name.into_string().ok());
    let (named, chosen) = match (argument, variable, ground.config().tmux_socket) {
        (Some(name), _, _) => (Some(name), "by --tmux"),
        (None, Some(name), _) => (Some(name), "by TASUKI_TMUX"),
        (None, None, Some(name)) => (Some(name), "by config.toml"),
        (None, None, None) => (None, "as your default server"),
    };
    let socket = named.map_or(Socket::Default, Socket::named);
    let path = ground.path();
    TmuxSetup {
        program: child::find_program("tmux", &path).ok(),
        socket: examine::socket_path(&socket, ground.variable("TMUX_TMPDIR")),
        chosen,
    }
}

/// The server that a command line names: `--tmux NAME` or `--tmux=NAME`.
fn tmux_argument(argv: &[String]) -> Option<String> {
    let at = argv.iter().position(|word| word == "--tmux" || word.starts_with("--tmux="))?;
    argv[at].strip_prefix("--tmux=").or_else(|| argv.get(at + 1).map(String::as_str)).map(str::to_owned)
}

fn judge(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![program(facts), socket(facts)];
    checks.extend(server(facts));
    checks.extend(unattached(facts));
    checks
}

fn program(facts: &Facts) -> Check {
    let id = "tmux.program";
    let path = facts.place.program.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    match &facts.program {
        Program::Missing => {
            let said = format!("tmux is not in the PATH that {} has", facts.whose);
            Check::fail(
                id,
                said,
                format!("install tmux {} or newer, or start the sidecar with a PATH that has it", Version::MINIMUM),
            )
        }
        Program::Broken(why) => {
            Check::fail(id, format!("{path}: {why}"), "check that program; tasuki uses the first tmux in its PATH")
        }
        Program::There(said, version) if *version < Version::MINIMUM => {
            let fix = format!("install tmux {} or newer, then restart the tmux server too", Version::MINIMUM);
            Check::fail(id, format!("{path} is {said}, which is too old"), fix)
        }
        Program::There(said, _) => Check::ok(id, format!("{path} is {said}")),
    }
}

fn socket(facts: &Facts) -> Check {
    let id = "tmux.socket";
    let (socket, chosen) = (facts.place.socket.display(), facts.place.chosen);
    if let Err(error) = tmux::check_length(&facts.place.socket) {
        return Check::fail(id, format!("{error}, chosen {chosen}"), SocketPathTooLong::FIX);
    }
    match &facts.server {
        Some(Server::Foreign { path, .. }) if facts.open_way.as_ref() == Some(path) => {
            return Check::skipped(id, "not checked: other users could replace it, see paths.above");
        }
        Some(Server::Foreign { said, fix, .. }) => return Check::fail(id, said, fix),
        _ => {}
    }
    match &facts.own {
        Some(own) if !files::lead_to_same(own, &facts.place.socket) => {
            let said = format!(
                "this shell is on the tmux server {}, but tasuki uses {socket}, chosen {chosen}",
                own.display()
            );
            Check::warn(
                id,
                said,
                "if that is wrong: tasuki run --tmux, [tmux] socket in config.toml, or the same TMUX_TMPDIR for both",
            )
        }
        _ => Check::ok(id, format!("{socket}, chosen {chosen}")),
    }
}

fn server(facts: &Facts) -> Vec<Check> {
    let id = "tmux.server";
    let socket = facts.place.socket.display();
    let word = shell_word(&socket.to_string());
    let begin = format!("start a server: tmux -S {word} new-session -d");
    if tmux::check_length(&facts.place.socket).is_err() {
        return vec![Check::skipped(id, "no server can be reached at so long a path, see tmux.socket")];
    }
    let Some(server) = &facts.server else {
        return vec![Check::skipped(id, "the server can't be checked without tmux")];
    };
    let check = match server {
        Server::Answers { version, .. } if *version < Version::MINIMUM => {
            let fix = "end that server when its agents are done, then start a new one with the installed tmux";
            Check::fail(id, format!("the server was started by tmux {version}, which is too old"), fix)
        }
        Server::Answers { pid, version } => Check::ok(id, format!("process {pid} answers, tmux {version}")),
        Server::Redefined(_) => Check::ok(id, "the server answers"),
        Server::ManualSize => Check::fail(
            id,
            "the tmux option window-size is manual for all windows: tmux crashes if a window is made then",
            format!("set another value: tmux -S {word} set-option -g window-size latest"),
        ),
        Server::None { .. } if facts.may_start => {
            Check::ok(id, "no server is running; the sidecar starts one, because config.toml allows it")
        }
        Server::None { is_left_over: true } => {
            Check::fail(id, format!("no server listens on {socket}: an ended server left the file behind"), begin)
        }
        Server::None { is_left_over: false } => {
            Check::fail(id, format!("no server runs on {socket}"), begin_or_return(&facts.place.socket, begin))
        }
        Server::Foreign { .. } => Check::skipped(id, "not checked: the server may belong to another user"),
        Server::Silent => Check::fail(
            id,
            format!("the server on {socket} does not answer"),
            "the server may be stopped or overloaded: look at its process, then continue it with kill -CONT or end it",
        ),
        Server::Unclear(why) => Check::fail(
            id,
            format!("the server on {socket} can't be queried: {why}"),
            format!("try it yourself: tmux -S {word} list-sessions"),
        ),
    };
    let aliases = match server {
        Server::Redefined(command) => Check::fail(
            "tmux.aliases",
            format!("the option command-alias redefines {command}, which tasuki needs unchanged"),
            format!("remove that from your tmux.conf, then: tmux -S {word} set-option -s -u command-alias"),
        ),
        Server::Answers { .. } => Check::ok("tmux.aliases", "no command that tasuki needs is redefined"),
        Server::ManualSize | Server::None { .. } | Server::Silent | Server::Foreign { .. } | Server::Unclear(_) => {
            Check::skipped("tmux.aliases", "the server can't be queried")
        }
    };
    vec![check, aliases]
}

/// While the sidecar is connected, its own client keeps such a server alive.
fn unattached(facts: &Facts) -> Option<Check> {
    let word = shell_word(&facts.place.socket.display().to_string());
    (facts.ends_unattached == Some(true)).then(|| {
        Check::warn(
            "tmux.unattached",
            "the tmux option exit-unattached is on: if nobody is attached when the sidecar restarts, tmux ends the server \
             and all its agents",
            format!("set it to off: tmux -S {word} set-option -s exit-unattached off"),
        )
    })
}

/// What to do where there is no socket. A system that clears its shared folder may remove the socket of a running
/// server. That server makes its socket again when it gets SIGUSR1.
fn begin_or_return(socket: &Path, begin: String) -> String {
    if !["/tmp", "/private/tmp", "/var/tmp"].iter().any(|folder| socket.starts_with(folder)) {
        return begin;
    }
    format!(
        "{begin}. If your server still runs (pgrep -x tmux shows its process id), the system may have removed its socket \
         while it cleared that folder: kill -USR1 and that id makes the socket again; set TMUX_TMPDIR to a folder of your \
         own to prevent it"
    )
}

/// The `PATH` in which agents' programs are looked for, and whose it is.
pub(super) fn path_of_windows(ground: &DoctorFacts) -> (OsString, &'static str) {
    let place = place(ground);
    let asked = place.program.as_ref().and_then(|program| examine::path_of_windows(program, &place.socket));
    match asked {
        Some(path) => (path.into(), "tmux's windows"),
        None => (ground.path(), ground.whose()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::CheckState;
    use super::*;

    fn facts(program: Program, server: Option<Server>) -> Facts {
        let place = TmuxSetup {
            program: Some("/usr/bin/tmux".into()),
            socket: "/tmp/tmux-0/default".into(),
            chosen: "by --tmux",
        };
        let (whose, ends_unattached) = ("this shell", None);
        Facts { place, whose, program, server, ends_unattached, may_start: false, own: None, open_way: None }
    }

    fn there(version: &str) -> Program {
        Program::There(version.to_owned(), Version::parse(version))
    }

    fn failed(facts: &Facts) -> Vec<String> {
        judge(facts).into_iter().filter(|check| check.state == CheckState::Fail).map(|check| check.id).collect()
    }

    #[test]
    fn the_sidecars_server_is_found_in_either_form_of_its_argument() {
        let named = |line: &str| tmux_argument(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in ["tasuki run --tmux /tmp/t", "tasuki run --tmux=/tmp/t", "tasuki --tmux=/tmp/t run --home /h"] {
            assert_eq!(named(line).as_deref(), Some("/tmp/t"), "{line}");
        }
        assert_eq!(["tasuki run", "tasuki run --tmux", "tasuki run --tmuxes=x"].map(named), [const { None }; 3]);
    }

    #[test]
    fn a_socket_path_that_is_too_long_is_named_with_its_length_and_the_limit() {
        let mut facts = facts(there("3.4"), Some(Server::None { is_left_over: false }));
        facts.place.socket = format!("/tmp/{}", "a".repeat(200)).into();
        assert_eq!(failed(&facts), ["tmux.socket"]);
        let said = &judge(&facts)[1].said;
        let limit = tmux::LONGEST_SOCKET_PATH.to_string();
        assert!(["205 bytes", limit.as_str(), "/tmp/aaa"].iter().all(|part| said.contains(part)), "{said}");
    }

    #[test]
    fn a_socket_that_was_cleared_away_can_be_made_again() {
        let fix = |socket: &str| {
            let mut facts = facts(there("3.4"), Some(Server::None { is_left_over: false }));
            facts.place.socket = socket.into();
            judge(&facts)[2].fix.clone().expect("a fix")
        };
        assert!(fix("/tmp/tmux-0/default").contains("kill -USR1"), "{}", fix("/tmp/tmux-0/default"));
        assert!(fix("/private/tmp/tmux-0/default").contains("kill -USR1"));
        assert!(!fix("/home/ada/run/tmux-0/default").contains("USR1"));
    }

    #[test]
    fn each_fact_has_its_judgement() {
        let answers = |version: &str| Some(Server::Answers { pid: 7, version: Version::parse(version) });
        let foreign = || Server::Foreign { path: "/tmp".into(), said: "no".to_owned(), fix: "?".to_owned() };
        let table: [(Program, Option<Server>, &[&str]); 12] = [
            (there("3.3a"), answers("3.3a"), &[]),
            (there("3.0"), None, &["tmux.program"]),
            (Program::Missing, None, &["tmux.program"]),
            (Program::Broken("no".to_owned()), None, &["tmux.program"]),
            (there("3.4"), answers("3.1c"), &["tmux.server"]),
            (there("3.4"), Some(Server::None { is_left_over: true }), &["tmux.server"]),
            (there("3.4"), Some(Server::None { is_left_over: false }), &["tmux.server"]),
            (there("3.4"), Some(Server::Silent), &["tmux.server"]),
            (there("3.4"), Some(foreign()), &["tmux.socket"]),
            (there("3.4"), Some(Server::Unclear("?".to_owned())), &["tmux.server"]),
            (there("3.4"), Some(Server::Redefined("set-option".to_owned())), &["tmux.aliases"]),
            (there("3.4"), Some(Server::ManualSize), &["tmux.server"]),
        ];
        for (program, server, expected) in table {
            let facts = facts(program, server);
            assert_eq!(failed(&facts), expected, "{:?} {:?}", facts.program, facts.server);
        }
    }

    #[test]
    fn a_server_that_may_be_started_need_not_run_and_a_shell_on_another_server_is_warned_of() {
        let mut facts = facts(there("3.4"), Some(Server::None { is_left_over: false }));
        facts.may_start = true;
        assert_eq!(failed(&facts), [] as [&str; 0]);
        facts.own = Some("/tmp/other".into());
        assert_eq!(socket(&facts).state, CheckState::Warn);
        facts.own = Some(facts.place.socket.clone());
        assert_eq!(socket(&facts).state, CheckState::Ok);
    }
}
