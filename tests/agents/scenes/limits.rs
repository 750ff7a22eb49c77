//! The usage limit of each CLI, as its service tells it.

use crate::cli::Cli;
use crate::scene::{PERSONA, Scene};
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

/// How long the scripted accounts are used up, in seconds.
const LASTS: i64 = 7_200;
/// How long a weekly limit lasts, at which Claude Code opens a dialog.
const LASTS_DAYS: i64 = 3 * 86_400;
/// What the agent is asked when its limit is reached.
const REFUSED: &str = "Look at the parser.";
/// How long a limit lasts whose end is awaited, in seconds. Codex reports no failed turn, so a shorter one could end
/// unseen.
const LASTS_BRIEFLY: i64 = 180;
/// The same for opencode, which tells only of longer waits.
const LASTS_FOR_OPENCODE: i64 = 330;
/// With these words an agent is told to continue.
const RESUME: &str = "The limit is over, so continue.";

/// The CLI's words are understood: the view has the kind and the end of the limit, the journal one line, and a turn
/// that goes well is the end of it.
pub(crate) fn limited(cli: Cli) {
    let scene = Scene::with(cli, "", |scene| subscribe(scene, cli));
    let agent = scene.agent();
    scene.model.on(REFUSED, &format!("[[limit:{LASTS}]]"), u32::MAX);
    let begun = chrono::Utc::now().timestamp();
    scene.says(&agent, REFUSED);
    // Neither CLI reports such an end of a turn: the screen is looked at as soon as a text waits for it.
    let waiting = [Cli::Codex, Cli::Gemini].contains(&cli).then(|| {
        let text = "Look at the lexer. [[slow:6]]";
        scene.stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": text}))
    });
    scene.until("its limit is shown", || !scene.stage.agent_view(&agent)["limited"].is_null());
    let limited = scene.stage.agent_view(&agent)["limited"].clone();
    scene.keep(&agent, "usage_limit");
    assert_eq!(limited["kind"], "usage_limit", "{limited:#}\n{}", scene.story());
    let until = limited["until"].as_str().and_then(|at| chrono::DateTime::parse_from_rfc3339(at).ok());
    let lasts = until.map(|at| at.timestamp() - begun);
    assert!(lasts.is_some_and(|lasts| (LASTS - 60..LASTS + 180).contains(&lasts)), "{limited:#}\n{}", scene.story());
    continues(&scene, &agent);
    match waiting {
        Some(request) => {
            let answer = scene.stage.result(&request);
            assert_eq!(answer["result"]["verdict"], "delivered", "{answer}\n{}", scene.story());
        }
        None => scene.says(&agent, "Go on with the lexer."),
    }
    scene.until("the limit is over", || {
        let view = scene.stage.agent_view(&agent);
        view["limited"].is_null() && view["state"] == "idle"
    });
    let lines: Vec<Value> = scene.stage.journal().into_iter().filter(|line| line["type"] == "agent.limited").collect();
    assert_eq!(lines.len(), 1, "{lines:#?}\n{}", scene.story());
    assert_eq!((&lines[0]["limit"], &lines[0]["until"]), (&limited["kind"], &limited["until"]));
    assert_eq!(scene.stage.errors(), Vec::<Value>::new());
    scene.nothing_came_twice();
}

/// Its user gives up the wait where the CLI waits within the turn or in a dialog.
fn continues(scene: &Scene, agent: &str) {
    let keys: &[&str] = match scene.cli {
        Cli::Gemini => &["2"],
        Cli::Opencode => &["Escape"],
        Cli::Claude | Cli::Codex | Cli::Pi => return,
    };
    let is_there = |screen: &str| screen.contains("Keep trying") || screen.contains("retrying in");
    let mut pressed: Option<Instant> = None;
    scene.until("the wait is given up", || {
        let waits = is_there(&scene.screen(agent));
        if waits {
            scene.presses(agent, keys, &mut pressed);
        }
        !waits && pressed.is_some()
    });
    scene.until("the turn is over", || scene.stage.agent_view(agent)["state"] != "blocked");
    if scene.cli == Cli::Opencode {
        scene.until_idle(agent);
    }
}

fn subscribe(scene: &Scene, cli: Cli) {
    if let Some((name, value)) = cli.subscribe(&scene.home()) {
        scene.set(name, value);
    }
}

/// The work of a CLI that is used up goes to another one; when that is used up too, the work stays and the operator is
/// told.
pub(crate) fn fallback(first: Cli) {
    let next = if first == Cli::Pi { Cli::Claude } else { Cli::Pi };
    let told = std::path::PathBuf::from(std::env::var_os("HOME").expect("a home of its own")).join("told");
    let command = format!("[\"/bin/sh\", \"-c\", 'cat >> \"$0\"', \"{}\"]", told.display());
    let config = format!("[limits]\non_usage_limit = \"hand_off\"\n[notify]\ncommand = {command}\n");
    let scene = Scene::of_several(&[first, next], &config, |scene| {
        subscribe(scene, first);
        subscribe(scene, next);
        let path = scene.stage.home().join("data/personas").join(PERSONA).join("persona.toml");
        let persona = fs::read_to_string(&path).expect("it was written");
        let fallbacks = format!("fallbacks = [{{ profile = \"{}\" }}]\n", next.name());
        fs::write(&path, persona + &fallbacks).expect("written");
    });
    let is_told = |what: &str| fs::read_to_string(&told).is_ok_and(|told| told.contains(what));
    let agent = scene.agent();
    scene.says(&agent, "Remember the number eleven.");
    scene.until_idle(&agent);
    // Claude Code opens a dialog at a limit of days; opencode tries again until it is interrupted.
    let (lasts, times) = if first == Cli::Claude { (LASTS_DAYS, 1) } else { (LASTS, u32::MAX) };
    scene.model.on(REFUSED, &format!("[[limit:{lasts}]]"), times);
    scene.says(&agent, REFUSED);
    if first == Cli::Gemini {
        continues(&scene, &agent);
    }
    // Codex reports no failed turn: it is looked at after two minutes.
    let patience = Duration::from_secs(200);
    let handoff = || scene.stage.agent_view(&agent)["handoff_id"].as_str().map(str::to_owned);
    let id = scene.stage.wait_within(patience, "its handoff begins", handoff);
    let view = scene.stage.until_step(&id, "done");
    let seen = (&view["author"], &view["reason"], &view["successor_profile"]);
    assert_eq!(seen, (&json!("salvage"), &json!("usage_limit"), &json!(next.name())), "{view:#}");
    let document = fs::read_to_string(view["file_path"].as_str().expect("a path")).expect("the document");
    assert!(document.contains("number eleven") && document.contains(REFUSED), "{document}");
    scene.until("the operator is told where the work went", || {
        is_told(&format!("hands its work off to {}", next.name()))
    });
    let successor = view["successor_id"].as_str().expect("a successor").to_owned();
    scene.until_idle(&successor);
    scene.model.on("Go on with the lexer.", &format!("[[limit:{LASTS}]]"), u32::MAX);
    scene.says(&successor, "Go on with the lexer.");
    scene.until("the operator is told that nothing is left", || is_told("no fallback can take over"));
    let view = scene.stage.agent_view(&successor);
    assert_eq!((&view["limited"]["kind"], &view["handoff_id"]), (&json!("usage_limit"), &Value::Null), "{view:#}");
    assert!(view["ended_at"].is_null(), "{view:#}");
    scene.nothing_came_twice();
}

/// The end of the limit is awaited: then the agent works again, by itself or because it is told to, once.
pub(crate) fn waited_for(cli: Cli) {
    let config = format!("[limits]\non_usage_limit = \"wait\"\nresume_text = \"{RESUME}\"\n");
    let scene = Scene::with(cli, &config, |scene| subscribe(scene, cli));
    let agent = scene.agent();
    let lasts = if cli == Cli::Opencode { LASTS_FOR_OPENCODE } else { LASTS_BRIEFLY };
    let until = chrono::Utc::now().timestamp() + lasts;
    scene.model.on(REFUSED, &format!("[[limit_until:{until}]]"), u32::MAX);
    scene.says(&agent, REFUSED);
    let patience = Duration::from_secs(u64::try_from(lasts).expect("it lasts"));
    let limited = || Some(scene.stage.agent_view(&agent)["limited"].clone()).filter(|limited| !limited.is_null());
    let seen = scene.stage.wait_within(patience, "its limit is shown", limited);
    assert_eq!(seen["kind"], "usage_limit", "{}", scene.story());
    assert!(seen["until"].is_string(), "{}", scene.story());
    if cli == Cli::Gemini {
        continues(&scene, &agent);
    }
    // Claude Code tells itself to continue, and opencode waits within its turn.
    let itself = match cli {
        Cli::Claude => Some("usage limit has reset. Continue the task"),
        Cli::Opencode => Some(REFUSED),
        Cli::Codex | Cli::Pi | Cli::Gemini => None,
    };
    let answered = |prompt: &str| {
        scene.model.look(|heard| {
            heard.iter().any(|heard| {
                heard.answered == "Understood." && heard.prompts.last().is_some_and(|last| last.contains(prompt))
            })
        })
    };
    let patience = patience + Duration::from_secs(300);
    let works = || answered(itself.unwrap_or(RESUME)).then_some(());
    scene.stage.wait_within(patience, "the agent works again", works);
    assert!(chrono::Utc::now().timestamp() >= until, "not before the limit has ended");
    scene.until("the limit is over", || limited().is_none() && scene.stage.agent_view(&agent)["state"] == "idle");
    let told = scene.conversation(RESUME).iter().filter(|prompt| prompt.contains(RESUME)).count();
    assert_eq!(told, usize::from(itself.is_none()), "{}", scene.story());
    assert_eq!(scene.stage.errors(), Vec::<Value>::new());
    scene.nothing_came_twice();
}
