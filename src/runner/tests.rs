//! Effects on a disk that hangs, and on a git that is slow.

use super::*;
use crate::agents::Profiles;
use crate::config::{Config, Home, OperatorCommand};
use crate::core::effect::{DocumentSource, Drift, ExaminePlan};
use crate::git::Git;
use crate::tmux::{Socket, SocketOptions, Tmux};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

const ID: &str = "11111111-1111-4111-8111-111111111111";

/// The tools of a home with the persona `dev`, and no tmux server.
fn tools(home: &Path) -> Tools {
    std::fs::create_dir_all(home.join("data/personas/dev")).expect("a folder");
    std::fs::write(home.join("data/personas/dev/skill.md"), "You write code.\n").expect("a skill");
    let options = SocketOptions {
        socket: Socket::Path(home.join("no-server")),
        home_tag: "01234567".to_owned(),
        program: "tasuki".into(),
        start_server: false,
    };
    let (notices, _) = mpsc::channel(8);
    let Config { facts, .. } = Config::default();
    Tools {
        tmux: Tmux::start(options, notices).expect("a thread"),
        profiles: Profiles::load(None).expect("the built-in ones"),
        home: Home::at(home).expect("a home"),
        notify_command: OperatorCommand::None,
        gh: "gh".to_owned(),
        facts,
        allow: Vec::new(),
        program: "tasuki".into(),
        late: Arc::default(),
    }
}

fn plan() -> ExaminePlan {
    let plan: Value = json!({"handoff_id": ID, "agent_id": ID, "persona": "dev", "file_name": "d.md", "sha256": "00",
        "author": "agent_file", "is_urgent": false, "rules": Config::default().document, "instruction": "",
        "profile": "demo", "chain": {}});
    serde_json::from_value(plan).expect("a plan")
}

#[tokio::test]
async fn an_examination_may_take_as_long_as_git_may_take_to_answer_its_questions() {
    let home = tempfile::tempdir().expect("a folder");
    let mut tools = tools(home.path());
    let examine = Effect::Examine(Box::new(plan()));
    assert!(limit(&tools, &examine) < Duration::from_secs(90));
    for seconds in [20, 120, 7 * 24 * 3600] {
        tools.facts.timeout = Duration::from_secs(seconds);
        let questions = 2 * examine::git(&tools).longest();
        assert!(limit(&tools, &examine) >= questions + Duration::from_secs(30), "{seconds} s for a call");
    }
}

#[tokio::test]
async fn the_look_before_the_briefing_ends_in_time_however_long_a_call_of_git_may_take() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("a folder");
    let program = home.path().join("slow-git");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 600\n").expect("a program");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("set");
    let git = Git { program: program.display().to_string(), limit: Duration::from_secs(600) };
    let before = Drift { cwd: home.path().display().to_string(), repository: Default::default() };
    let begun = Instant::now();
    let drift = examine::changed_since(&git, &before, Duration::from_millis(300)).await;
    assert!(drift.is_empty() && begun.elapsed() < Duration::from_secs(60), "{drift:?} after {:?}", begun.elapsed());
}

/// A folder on a network disk may not answer for minutes. If an effect waited for it on a thread of the runtime, the
/// loop would have no thread left soon.
#[test]
fn no_effect_waits_for_a_disk_on_a_thread_of_the_runtime() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let home = tempfile::tempdir().expect("a folder");
        let ExaminePlan { handoff_id, persona, file_name, sha256, .. } = plan();
        let source = DocumentSource::Text("# Work\n".to_owned());
        let effects = [
            Effect::PrepareFolder { persona: persona.clone() },
            Effect::ReadDocument { handoff_id, persona: persona.clone(), file_name: file_name.clone() },
            Effect::ComposeDocument { persona: persona.clone(), file_name: file_name.clone(), source, replaces: None },
            Effect::CompareDocument { persona: persona.clone(), file_name, sha256, text: None, drift: None },
            Effect::ReadPersona { persona },
            Effect::Examine(Box::new(plan())),
        ];
        // The disk hangs: the only thread for work that waits for a disk does not come back.
        let (answers, hangs) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || hangs.recv());
        let (mut runner, mut ended) = Runner::new(Arc::new(tools(home.path())));
        for (key, effect) in (1..).zip(effects.clone()) {
            runner.submit(EffectKey(key), effect, false);
        }
        let early = tokio::time::timeout(Duration::from_secs(1), ended.recv()).await;
        assert!(early.is_err(), "it did not wait for the disk, or waited on a thread of the runtime: {early:?}");
        drop(answers);
        for _ in effects {
            let outcome = tokio::time::timeout(Duration::from_secs(60), ended.recv()).await;
            assert!(outcome.is_ok_and(|outcome| outcome.is_some()), "each of them ends");
        }
    });
}
