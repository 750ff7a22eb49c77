//! The configuration: every key has a default, and what is wrong is named with its line.

use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use tasuki::config::{Config, ConfigError, EXAMPLE, Home, OperatorCommand, Target};
use tasuki::spool::Spool;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("/h/config.toml"), text)
}

fn wrong(text: &str) -> (String, usize, String) {
    match parse(text) {
        Err(ConfigError::Wrong { key, line, message, .. }) => (key, line, message),
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn the_example_names_every_default() {
    assert_eq!(parse(EXAMPLE).expect("as it is"), Config::default());
    let keys = EXAMPLE.lines().filter(|line| !line.starts_with("# ")).map(|line| line.trim_start_matches('#'));
    // These have no default: without them there is none.
    let is_bare = |line: &&str| ["socket", "auto_at", "to ="].iter().any(|key| line.starts_with(key));
    let all: String = keys.filter(|line| !is_bare(line)).map(|line| format!("{line}\n")).collect();
    assert_eq!(parse(&all).expect("with every key"), Config::default());
    // Every key of every section is there, and nothing else.
    let schema = tasuki::config::schema().to_value();
    let mut expected = Vec::new();
    for (section, named) in schema["properties"].as_object().expect("sections") {
        let place = named["$ref"].as_str().and_then(|place| place.strip_prefix('#')).expect("a reference");
        let keys = schema.pointer(place).and_then(|section| section["properties"].as_object()).expect("keys");
        expected.extend(keys.keys().map(|key| format!("{section}.{key}")));
    }
    let mut section = String::new();
    let mut found: Vec<String> = Vec::new();
    for line in EXAMPLE.lines() {
        match line.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            Some(name) => name.clone_into(&mut section),
            None => {
                found.extend(line.strip_prefix('#').and_then(|line| line.split_once(" = ")).and_then(|(key, _)| {
                    let is_key = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                    is_key.then(|| format!("{section}.{key}"))
                }))
            }
        }
    }
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_share_of_the_context_is_a_percentage() {
    let config = parse("[context]\nsuggest_at = 70\nauto_at = 100\n").expect("legal");
    assert_eq!((config.context.suggest_at, config.context.auto_at), (Some(70), Some(100)));
    for value in ["0", "101", "-1", "\"70\"", "70.5"] {
        let (key, line, _) = wrong(&format!("[context]\n\nauto_at = {value}\n"));
        assert_eq!((key.as_str(), line), ("context.auto_at", 3), "{value}");
    }
}

#[test]
fn a_default_target_is_an_issue_without_a_host_or_a_gist() {
    for text in ["octo/app#42", "gist"] {
        let config = parse(&format!("[publish]\nto = \"{text}\"\n")).expect("legal");
        assert_eq!(config.publish.to, tasuki::core::request::PublishTarget::read_default(text), "{text}");
        assert!(config.publish.to.is_some());
    }
    for bad in ["\"octo/app\"", "\"https://github.com/o/r/issues/1\"", "\"Gist\"", "\"\"", "false", "42"] {
        let (key, line, _) = wrong(&format!("[publish]\nto = {bad}\n"));
        assert_eq!((key.as_str(), line), ("publish.to", 2), "{bad}");
    }
}

#[test]
fn a_handoff_is_suggested_unless_that_is_turned_off() {
    let suggest_at = |text: &str| parse(text).expect("legal").context.suggest_at;
    assert_eq!(suggest_at(""), Some(75));
    assert_eq!(suggest_at("[context]\nauto_at = 85\n"), Some(75));
    assert_eq!(suggest_at("[context]\nsuggest_at = 1\n"), Some(1));
    for off in ["0", "\"off\""] {
        assert_eq!(suggest_at(&format!("[context]\nsuggest_at = {off}\n")), None, "{off}");
    }
    for value in ["101", "-1", "\"70\"", "70.5", "false"] {
        let (key, line, message) = wrong(&format!("[context]\nsuggest_at = {value}\n"));
        assert_eq!((key.as_str(), line), ("context.suggest_at", 2), "{value}");
        assert!(message.contains("from 1 to 100") && message.contains("off"), "{message}");
    }
}

#[test]
fn notices_go_to_a_command_or_to_the_desktop() {
    let command = |value: &str| parse(&format!("[notify]\ncommand = {value}\n")).expect("legal").notify_command;
    assert_eq!(command("\"desktop\""), OperatorCommand::Desktop);
    assert_eq!(command("[]"), OperatorCommand::None);
    assert_eq!(command("[\"desktop\"]"), OperatorCommand::Command(vec!["desktop".to_owned()]));
    for value in ["\"Desktop\"", "\"\"", "true", "[1]", "[\"\", \"x\"]"] {
        assert_eq!(wrong(&format!("[notify]\ncommand = {value}\n")).0, "notify.command", "{value}");
    }
}

#[test]
fn every_key_is_taken() {
    let config = parse(
        "[limits]\nwaiting = \"90s\"\nending = \"1m 30s\"\n[ack]\nprepare = \"2h\"\n[notify]\ncommand = [\"notify-send\", \"a b\"]\n\
         blocked_after = \"30s\"\n\
         [escalation]\ntarget = \"agent:orchestrator\"\norchestrator = [\"page\"]\n[tmux]\nsocket = \"work\"\nstart = true\nstatus = false\n",
    )
    .expect("legal");
    assert_eq!((config.limits.waiting_ms, config.limits.ending_ms, config.ack.prepare_ms), (90_000, 90_000, 7_200_000));
    let command = ["notify-send", "a b"].map(str::to_owned).to_vec();
    assert_eq!(config.notify_command, OperatorCommand::Command(command));
    assert_eq!(config.notify.blocked_after_ms, 30_000);
    assert_eq!(config.escalation_target, Target::Agent("orchestrator".into()));
    assert_eq!(config.orchestrator, Target::Command(vec!["page".into()]));
    let tmux = (config.tmux_socket.as_deref(), config.tmux_start, config.tmux_status);
    assert_eq!(tmux, (Some("work"), true, false));
}

#[test]
fn a_wrong_key_or_value_names_key_and_line() {
    let (key, line, message) = wrong("[limits]\n\nwating = \"1s\"\n");
    assert_eq!((key.as_str(), line), ("limits.wating", 3));
    assert!(message.contains("wating"), "{message}");
    let (key, line, message) = wrong("[limits]\nwaiting = \"1m\"\nwriting = \"soon\"\n");
    assert_eq!((key.as_str(), line), ("limits.writing", 3));
    assert!(message.contains("soon"), "{message}");
    assert_eq!(wrong("[limits]\nwaiting = 90\n").0, "limits.waiting");
    assert!(wrong("limits = 5\n").2.ends_with("expected a table"), "no name of the source");
    assert_eq!(wrong("[ack]\nimmediate = \"10ms\"\n").1, 2);
    assert_eq!(wrong("[ack]\nimmediate = \"8days\"\n").0, "ack.immediate");
    assert_eq!(wrong("\n[limit]\n").1, 2);
    assert_eq!(wrong("[notify]\ncommand = \"notify-send it\"\n").0, "notify.command");
    assert_eq!(wrong("[notify]\ncommand = [\"\"]\n").0, "notify.command");
    assert_eq!(wrong("[escalation]\ntarget = \"somebody\"\n").0, "escalation.target");
    assert_eq!(wrong("[escalation]\ntarget = []\n").1, 2);
    assert_eq!(wrong("[tmux]\nsocket = \"\"\n").0, "tmux.socket");
    assert_eq!(wrong("[tmux]\nsocket = \" \"\n").0, "tmux.socket");
    assert_eq!(wrong("[tmux]\nsocket = \"run/s\"\n").0, "tmux.socket");
    assert_eq!(wrong("[limits]\nwaiting = \n").1, 2);
    assert_eq!(wrong("\"\" = 1\n").0, "\"\"");
    let text = parse("[tmux]\nstart = 1\n").expect_err("no boolean").to_string();
    assert!(text.starts_with("/h/config.toml, line 2: tmux.start: "), "{text}");
}

#[test]
fn no_file_is_no_error_and_a_file_that_others_can_write_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("config.toml");
    assert_eq!(Config::load(&path).expect("defaults"), Config::default());
    std::os::unix::fs::symlink("dotfiles/tasuki.toml", &path).expect("a link");
    let nowhere = Config::load(&path).expect_err("its settings are elsewhere");
    assert!(matches!(nowhere, ConfigError::Read { .. }), "{nowhere}");
    fs::remove_file(&path).expect("removed");
    fs::write(&path, "[tmux]\nstart = true\n").expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("set");
    assert!(Config::load(&path).expect("read").tmux_start);
    fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("set");
    let refused = || match Config::load(&path) {
        Err(error @ (ConfigError::NotAllowed { .. } | ConfigError::Unfit { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let is_about_rights = || Config::load(&path).is_err_and(|error| error.is_about_rights());
    let chmod = format!("Run: chmod go-w '{}'", path.display());
    assert!(refused().ends_with(&chmod) && is_about_rights(), "{}", refused());
    fs::remove_file(&path).expect("removed");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("pipe");
    let pipe = refused();
    assert!(pipe.ends_with("Put a regular file in its place, or remove it") && !pipe.contains("chmod"), "{pipe}");
    assert!(!is_about_rights());
    fs::remove_file(&path).expect("removed");
    fs::write(&path, "#".repeat(1024 * 1024 + 1)).expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
    let large = refused();
    assert!(large.ends_with("Shorten the file") && !large.contains("chmod"), "{large}");
}

#[test]
fn all_paths_lie_below_the_home() {
    let home = Home::resolve(Some(Path::new("/h/x"))).expect("absolute");
    assert_eq!(home.root(), Path::new("/h/x"));
    for (path, below) in [
        (home.config(), "config.toml"),
        (home.spool(), "spool"),
        (home.state(), "state"),
        (home.view(), "view"),
        (home.personas(), "data/personas"),
        (home.profiles(), "data/profiles"),
        (home.prompts(), "data/prompts"),
        (home.rules(), "data/rules.toml"),
    ] {
        assert_eq!(path, Path::new("/h/x").join(below));
    }
    assert!(Home::at(Path::new("relative")).expect("made absolute").root().is_absolute());
}

/// As on macOS, where `/tmp` and `/var` are links: the home has one path, whichever way leads to it.
#[test]
fn a_home_below_a_linked_folder_is_resolved_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let real = dir.path().canonicalize().expect("there").join("real");
    let link = dir.path().join("link");
    fs::DirBuilder::new().mode(0o700).create(&real).expect("made");
    std::os::unix::fs::symlink(&real, &link).expect("linked");
    let missing = Home::at(&link.join("new/home")).expect("resolved");
    assert_eq!(missing.root(), real.join("new/home"), "it need not exist");
    let spool = Spool::open(&link.join("new/home")).expect("a new home");
    assert_eq!(spool.home(), missing.root());
    for way in [link.join("new/home"), link.join("new/./home/"), link.join("../link/new/home"), real.join("new/home")] {
        assert_eq!(Home::at(&way).expect("resolved"), missing, "{}", way.display());
    }
    let entrance = dir.path().join("entrance");
    std::os::unix::fs::symlink(missing.root(), &entrance).expect("linked");
    let home = Home::at(&entrance).expect("resolved");
    assert_eq!(home, missing, "the home itself is behind a link");
    // The link leads elsewhere later: the home that was checked stays.
    fs::remove_file(&link).expect("removed");
    std::os::unix::fs::symlink(dir.path(), &link).expect("linked");
    assert_eq!(Spool::open(home.root()).expect("the same home").home(), missing.root());
}

#[test]
fn the_default_home_may_have_its_configuration_where_configurations_lie() {
    let user = tempfile::tempdir().expect("a folder");
    let place = user.path().join("config/tasuki");
    fs::create_dir_all(&place).expect("a folder");
    fs::write(place.join("config.toml"), "[limits]\nwritting = \"1m\"\n").expect("written");
    fs::set_permissions(place.join("config.toml"), fs::Permissions::from_mode(0o600)).expect("ours");
    // A service names its home by `--home`, and the pane of an agent by the variable: it is the same home. `install`
    // reads the file as `run` does, and never begins to run.
    let home = user.path().join("data/tasuki");
    let by_flag = ["--home".into(), home.clone().into_os_string()];
    let install = ["service", "install", "--dry-run"];
    for (args, variable, words) in
        [(&by_flag[..0], None, &["run"][..]), (&by_flag[..], None, &install), (&by_flag[..0], Some(&home), &install)]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.args(args).args(words).env("HOME", user.path()).env_remove("TASUKI_HOME");
        command.envs(variable.map(|home| ("TASUKI_HOME", home)));
        command.env("XDG_CONFIG_HOME", user.path().join("config")).env("XDG_DATA_HOME", user.path().join("data"));
        let output = command.output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(78), "{command:?}: {said}");
        assert!(said.contains("config/tasuki/config.toml, line 2") && said.contains("writting"), "{command:?}: {said}");
    }
}
