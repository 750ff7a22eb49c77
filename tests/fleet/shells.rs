//! What the bridge's program tells of itself to a shell: completions, also behind `tasuki fleet`.

use crate::support::said::{err, out};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tasuki-fleet");

/// What a shell is offered for a line whose last word is being typed.
fn offered(program: &str, home: &Path, line: &[&str]) -> Vec<String> {
    let mut command = Command::new(program);
    command.arg("--").args(line).env("TASUKI_COMPLETE", "bash").env("TASUKI_HOME", home);
    command.env("_CLAP_COMPLETE_INDEX", (line.len() - 1).to_string()).env("_CLAP_IFS", "\n");
    let output = command.output().expect("it runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", err(&output));
    out(&output).lines().map(str::to_owned).collect()
}

#[test]
fn commands_hosts_and_rights_are_offered() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(home.path().join("fleet/hosts")).expect("made");
    std::fs::write(home.path().join("fleet/hosts/box.json"), "{}").expect("written");
    std::fs::create_dir_all(home.path().join("data/personas/kai")).expect("made");
    std::fs::write(home.path().join("data/personas/kai/skill.md"), "x").expect("written");
    for (words, wanted) in [
        (&["service", "inst"][..], "install"),
        (&["accept", "b"], "box"),
        (&["accept", "box", "v"], "view"),
        (&["expel", ""], "box"),
        (&["persona", "push", ""], "kai"),
        (&["persona", "push", "kai", ""], "box"),
        (&["persona", "push", "kai", "--to", ""], "box"),
    ] {
        let own = offered(PROGRAM, home.path(), &[&["tasuki-fleet"], words].concat());
        assert!(own.iter().any(|word| word == wanted), "{words:?}: {own:?}");
        // Behind `tasuki fleet` the same is offered.
        let passed_on = offered(env!("CARGO_BIN_EXE_tasuki"), home.path(), &[&["tasuki", "fleet"], words].concat());
        assert_eq!(passed_on, own, "{words:?}");
    }
    let script = Command::new(PROGRAM).args(["completions", "bash"]).output().expect("it runs");
    assert!(out(&script).contains("-F _clap_complete_tasuki_fleet_whole tasuki-fleet"), "{}", out(&script));
}
