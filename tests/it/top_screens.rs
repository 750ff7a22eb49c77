//! What `top` shows, as text: fixed models drawn at fixed sizes, held to files in `tests/screens/top`. With
//! `TASUKI_WRITE_SCREENS=1` the files are written anew; look at the difference before you keep it.

use super::support::nasty;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tasuki::cli::top::draw::{Scene, TerminalStyle, detail_rows, draw};
use tasuki::cli::top::keys::key_action;
use tasuki::cli::top::model::{AgentRow, FailureRow, HandoffRow, HostMark, Model, SidecarStatus, WorkRow};
use tasuki::cli::top::ui::Ui;
use tasuki::contract::{HostState, understood};
use tasuki::demo::keys::KeyParser;

/// 2026-11-22 12:00:00 UTC.
const NOW_MS: i64 = 1_795_348_800_000;
const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (40, 10)];
const PLAIN: TerminalStyle = TerminalStyle { colour: false, unicode: true };

/// So many seconds before the time at which everything is drawn.
fn ago(seconds: i64) -> String {
    tasuki::core::time::rfc3339(NOW_MS - seconds * 1_000)
}

fn agent(number: u32, persona: &str, state: &str, percent: Option<u64>) -> Value {
    json!({
        "v": 1, "agent_id": format!("{:08x}-0000-4000-8000-00000000000a", 0x1a2b_3c4d_u32.wrapping_mul(number)),
        "persona_slug": persona, "profile": "demo", "pane": format!("%{number}"), "state": state, "cwd": "/home/kai/src/shop",
        "registered_at": ago(3_600 - i64::from(number)), "ended_at": (state == "ended").then(|| ago(60)),
        "context": percent.map(|percent| json!({"used": percent * 2_000, "window": 200_000, "percent": percent})),
    })
}

fn handoff(number: u32, agent: &Value, step: &str, entered: i64, limit: i64) -> Value {
    let failed = step == "failed";
    let error = json!({"error_id": format!("e-{number}"), "step": "briefing", "code": "unconfirmed",
        "message": "It is not known whether the text arrived", "hint": "look at the pane, then retry"});
    json!({
        "v": 1, "handoff_id": format!("{:08x}-0000-4000-8000-00000000000b", 0x7e6d_5c4b_u32.wrapping_mul(number)),
        "agent_id": agent["agent_id"], "persona_slug": agent["persona_slug"], "reason": "context is nearly full", "step": step,
        "created_at": ago(entered + 20), "deadline": (limit > 0).then(|| ago(entered - limit)),
        "steps": [{"step": "waiting", "entered_at": ago(entered + 20), "left_at": ago(entered)},
            {"step": step, "entered_at": ago(entered), "left_at": null}],
        "document": {"bytes": 3_456, "at": ago(1)}, "verdicts": {"instruction": {"verdict": "delivered"}},
        "error": if failed { error } else { Value::Null },
    })
}

fn failure(number: u32, handoff: &Value, message: &str) -> Value {
    json!({"v": 1, "error_id": format!("e-{number}"), "at": ago(300), "code": "unconfirmed", "message": message,
        "hint": "Look at the pane, then: tasuki retry --assume delivered or --assume not-delivered",
        "handoff_id": handoff["handoff_id"], "agent_id": handoff["agent_id"], "step": "briefing"})
}

fn item(number: u32, title: &str, status: &str, priority: &str) -> Value {
    json!({"item_id": format!("{:08x}-0000-4000-8000-00000000000c", 0x2b4d_6f81_u32.wrapping_mul(number)), "type": "implementation",
        "title": title, "status": status, "priority": priority, "parent_id": null, "children": [], "claimed_by": null,
        "created_at": ago(900)})
}

fn alive() -> SidecarStatus {
    SidecarStatus { pid: Some(4_711), is_alive: true, heartbeat_ms: None, tmux: Some(812), problem: None }
}

fn read_agent(view: &Value) -> Option<AgentRow> {
    AgentRow::read(&understood(view.clone())?)
}

fn model(sidecar: SidecarStatus, agents: &[Value], handoffs: &[Value], failures: &[Value], work: &[Value]) -> Model {
    let mut model = Model::new("/home/kai/.local/share/tasuki", "/home/kai", sidecar);
    model.agents = agents.iter().filter_map(read_agent).collect();
    model.handoffs = handoffs.iter().filter_map(|view| HandoffRow::read(&understood(view.clone())?)).collect();
    model.failures = failures.iter().filter_map(|file| FailureRow::read(&understood(file.clone())?)).collect();
    model.work = work.iter().filter_map(|view| WorkRow::read(&understood(view.clone())?)).collect();
    assert_eq!((model.agents.len(), model.handoffs.len()), (agents.len(), handoffs.len()));
    assert_eq!((model.failures.len(), model.work.len()), (failures.len(), work.len()));
    model.arranged()
}

fn busy() -> Model {
    let mut agents = vec![
        agent(1, "kai", "busy", Some(91)),
        agent(2, "ren", "idle", Some(45)),
        agent(3, "mio", "blocked", Some(72)),
        agent(4, "architect-of-the-whole-shop", "idle", None),
        agent(5, "kai", "ended", Some(99)),
    ];
    agents[0]["previous_agent_id"] = agents[4]["agent_id"].clone();
    let mut done = handoff(3, &agents[4], "done", 3_000, 0);
    done["successor_id"] = agents[0]["agent_id"].clone();
    let running = [handoff(1, &agents[0], "writing", 42, 900), handoff(2, &agents[1], "priming", 8, 300), done];
    for (agent, handoff) in [(0, 0), (1, 1)] {
        agents[agent]["handoff_id"] = running[handoff]["handoff_id"].clone();
    }
    let work = [
        item(1, "Mend the flaky checkout test", "ready", "urgent"),
        item(2, "Add a search to the shop", "claimed", "normal"),
        item(
            3,
            "漢字 in titles, and a title that is far too long for any of the columns that there are",
            "escalated",
            "low",
        ),
    ];
    model(alive(), &agents, &running, &[], &work)
}

fn failed() -> Model {
    let agents = [agent(1, "kai", "idle", Some(88)), agent(2, "ren", "idle", Some(12))];
    let handoffs = [handoff(1, &agents[0], "failed", 300, 0)];
    let failures = [failure(1, &handoffs[0], "It is not known whether the briefing arrived in the pane %1")];
    model(alive(), &agents, &handoffs, &failures, &[])
}

/// A handoff waits for a person to accept its document.
fn held() -> Model {
    let mut agents = [agent(1, "kai", "idle", Some(88)), agent(2, "ren", "busy", Some(12))];
    let mut handoffs = [handoff(1, &agents[0], "checking", 300, 0), handoff(2, &agents[1], "writing", 8, 300)];
    handoffs[0]["held_since"] = json!(ago(200));
    for (agent, handoff) in agents.iter_mut().zip(&handoffs) {
        agent["handoff_id"] = handoff["handoff_id"].clone();
    }
    model(alive(), &agents, &handoffs, &[], &[])
}

fn dead() -> Model {
    let problem = Some("Start one in another pane: tasuki run --home /home/kai/.local/share/tasuki".to_owned());
    let sidecar = SidecarStatus { is_alive: false, heartbeat_ms: Some(NOW_MS - 95_000), problem, ..alive() };
    model(sidecar, &[agent(1, "kai", "busy", Some(30))], &[], &[], &[])
}

fn crowd() -> Model {
    let states = ["idle", "busy", "idle", "busy", "blocked"];
    let one = |number: u32| {
        agent(number, &format!("worker-{number:03}"), states[number as usize % 5], Some(u64::from(number % 101)))
    };
    let agents: Vec<Value> = (1..=200).map(one).collect();
    model(alive(), &agents, &[], &[], &[])
}

/// Every text that comes from outside is one that tries to do harm, or is as wide as can be.
fn hostile() -> Model {
    let mut texts = nasty::nasty(Path::new("/nowhere"));
    texts.extend([
        nasty::long_line(),
        "漢字かな交じり文".repeat(30),
        "e\u{301}\u{302}\u{303}\u{304}".repeat(50),
        "👩\u{200d}👩\u{200d}👧👍\u{1f3fd}🇩🇪".repeat(9),
    ]);
    let agents: Vec<Value> = (1u32..).zip(&texts).map(|(number, text)| agent(number, text, "idle", Some(50))).collect();
    let agents: Vec<Value> = agents.into_iter().filter(|view| read_agent(view).is_some()).collect();
    let with = |number: u32, text: &String| {
        let mut view = handoff(number, &agents[0], "writing", 5, 60);
        (view["reason"], view["persona_slug"]) = (json!(text), json!(text));
        view
    };
    let handoffs: Vec<Value> = (1u32..).zip(&texts).map(|(number, text)| with(number, text)).collect();
    // Nothing is known of this handoff, so its failures wait for a person.
    let gone = with(99, &texts[0]);
    let failures: Vec<Value> = (1u32..).zip(&texts).map(|(number, text)| failure(number, &gone, text)).collect();
    let work: Vec<Value> = (1u32..).zip(&texts).map(|(number, text)| item(number, text, "ready", "normal")).collect();
    model(alive(), &agents, &handoffs, &failures, &work)
}

/// Types keys and draws.
fn drawn(model: &Model, keys: &str, (columns, rows): (u16, u16), look: TerminalStyle) -> Buffer {
    let mut ui = Ui::default();
    ui.details = vec![
        "agent 1a2b3c4d".to_owned(),
        "  persona     kai".to_owned(),
        format!("  folder      {}", "/deep".repeat(30)),
    ];
    ui.measure(detail_rows(&ui.details, Rect::new(0, 0, columns, rows)));
    for key in KeyParser::default().feed(keys.as_bytes()) {
        if let Some(action) = key_action(&key, &ui.mode) {
            ui.act(&action, model);
        }
    }
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    let scene = Scene { model, ui: &ui, look, now_ms: NOW_MS, columns };
    let paint = |frame: &mut ratatui::Frame<'_>| draw(scene, frame.area(), frame.buffer_mut());
    terminal.draw(paint).expect("drawn");
    terminal.backend().buffer().clone()
}

/// The cells as text, without the blanks at the ends of rows. The second cell of a wide character is left out.
fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let (mut row, mut skip) = (String::new(), 0);
        for x in 0..buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            if skip == 0 {
                row.push_str(symbol);
                skip = ratatui::text::Span::raw(symbol).width().max(1);
            }
            skip -= 1;
        }
        text += row.trim_end();
        text.push('\n');
    }
    text
}

/// The same home, and what two other hosts have told of themselves: one lives, one is away.
fn fleet() -> Model {
    let mut model = busy();
    model.own_host = Some("desk".to_owned());
    let hosts = [("box-1", HostState::Live, None), ("attic", HostState::Away, Some(NOW_MS - 3 * 3_600_000))];
    for (number, (name, state, since_ms)) in (11..).zip(hosts) {
        let host = Some(HostMark { name: name.to_owned(), state, since_ms });
        let view = agent(number, "zoe", "idle", Some(30));
        let mut row = read_agent(&view).expect("an agent");
        (row.host, row.pane) = (host.clone(), None);
        model.agents.push(row);
        let view = understood(handoff(number, &view, "writing", 30, 0)).expect("an object");
        let mut row = HandoffRow::read(&view).expect("a handoff");
        row.host = host;
        model.handoffs.push(row);
    }
    model.arranged()
}

/// Holds a screen to its file.
fn hold(name: &str, model: &Model, keys: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/screens/top");
    let mut wrong = Vec::new();
    for (columns, rows) in SIZES {
        let shown = text(&drawn(model, keys, (columns, rows), PLAIN));
        let path = folder.join(format!("{name}-{columns}x{rows}.txt"));
        if std::env::var_os("TASUKI_WRITE_SCREENS").is_some() {
            fs::create_dir_all(&folder).and_then(|()| fs::write(&path, &shown)).expect("written");
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        if kept != shown {
            let (mut kept, mut shown) = (kept.lines(), shown.lines());
            let mut rows = Vec::new();
            loop {
                match (kept.next(), shown.next()) {
                    (None, None) => break,
                    (was, is) if was == is => rows.push(format!("  {}", is.unwrap_or_default())),
                    (was, is) => rows.extend(
                        [was.map(|was| format!("- {was}")), is.map(|is| format!("+ {is}"))].into_iter().flatten(),
                    ),
                }
            }
            wrong.push(format!("{}\n{}", path.display(), rows.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "TASUKI_WRITE_SCREENS=1 writes them anew\n{}", wrong.join("\n\n"));
}

#[test]
fn an_empty_home() {
    hold("empty", &model(alive(), &[], &[], &[], &[]), "");
    hold("none", &Model::new("/home/kai/.local/share/tasuki", "/home/kai", SidecarStatus::default()), "");
}

#[test]
fn a_busy_home_in_each_of_its_lists() {
    let busy = busy();
    for (name, keys) in [("agents", "1"), ("handoffs", "2"), ("work", "3"), ("errors", "4"), ("lineage", "5")] {
        hold(&format!("busy-{name}"), &busy, keys);
    }
}

#[test]
fn questions_details_and_help() {
    let busy = busy();
    for (name, keys) in [
        ("reason", "jjhcontext is full"),
        ("focus", "jjh\rflaky tests"),
        ("cancel", "c"),
        ("details", "\r"),
        ("help", "?"),
    ] {
        hold(&format!("busy-{name}"), &busy, keys);
    }
}

#[test]
fn a_failed_handoff_with_its_fix_and_its_doubt() {
    let failed = failed();
    for (name, keys) in [("agents", ""), ("errors", "4"), ("doubt", "r")] {
        hold(&format!("failed-{name}"), &failed, keys);
    }
}

#[test]
fn a_handoff_that_waits_for_a_person() {
    let held = held();
    for (name, keys) in [("agents", ""), ("handoffs", "2"), ("document", "2v")] {
        hold(&format!("held-{name}"), &held, keys);
    }
}

#[test]
fn other_hosts_of_a_fleet_beside_this_one() {
    for (name, keys) in [("agents", "1"), ("handoffs", "2"), ("lineage", "5")] {
        hold(&format!("fleet-{name}"), &fleet(), keys);
    }
}

#[test]
fn a_sidecar_that_has_died() {
    hold("dead", &dead(), "");
}

#[test]
fn two_hundred_agents() {
    hold("crowd-first", &crowd(), "");
    hold("crowd-later", &crowd(), &"j".repeat(150));
}

#[test]
fn hostile_texts_stay_in_their_cells() {
    let hostile = hostile();
    for (name, keys) in [("agents", "1"), ("handoffs", "2"), ("work", "3"), ("errors", "4")] {
        hold(&format!("hostile-{name}"), &hostile, keys);
    }
    for keys in ["1", "2", "3", "4", "5", "1hx", "4d", "?", "\r", "2v"] {
        for (columns, rows) in SIZES.into_iter().chain([(200, 60), (41, 11), (79, 23)]) {
            let buffer = drawn(&hostile, keys, (columns, rows), PLAIN);
            let bad = |c: char| c.is_control() || tasuki::core::text::sanitise(&c.to_string()).is_empty();
            for cell in buffer.content() {
                assert!(!cell.symbol().chars().any(bad), "{:?}", cell.symbol());
            }
            for row in text(&buffer).lines() {
                assert!(ratatui::text::Span::raw(row).width() <= columns.into(), "{row}");
            }
        }
    }
}

#[test]
fn any_size_is_drawn_and_a_small_one_says_so() {
    for model in [busy(), failed(), dead(), crowd(), hostile()] {
        for columns in (1..130).step_by(7) {
            for rows in (1..50).step_by(5) {
                let shown = text(&drawn(&model, "", (columns, rows), PLAIN));
                let small = columns < 40 || rows < 10;
                assert_eq!(shown.starts_with("tasuki "), !small, "{columns}x{rows}\n{shown}");
            }
        }
    }
    assert!(text(&drawn(&busy(), "", (39, 9), PLAIN)).contains("too small"));
}

/// In a split pane too: it stands nowhere else.
#[test]
fn a_question_a_problem_and_long_details_can_be_read_in_small_windows_too() {
    let joined = |shown: &str| shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = joined(&text(&drawn(&held(), "a", (40, 10), PLAIN)));
    assert!(shown.contains("Accept the document as it is, for handoff 7e6d5c4b? y/n"), "{shown}");
    let shown = joined(&text(&drawn(&failed(), "r", (40, 10), PLAIN)));
    assert!(shown.contains("look at the pane. Did the text arrive?"), "{shown}");
    let with = |words: usize| {
        let problem = Some(format!("Begins{} ends", " word".repeat(words)));
        model(SidecarStatus { problem, ..alive() }, &[], &[], &[], &[])
    };
    let shown = text(&drawn(&with(60), "", (80, 18), PLAIN));
    assert!(shown.contains("Begins word") && shown.contains("word ends\n"), "{shown}");
    let shown = text(&drawn(&with(200), "", (80, 18), PLAIN));
    assert!(shown.contains("Begins word") && shown.contains("…\n?") && !shown.contains("ends"), "{shown}");
    // Of a line that is higher than the window, the end can be reached.
    let shown = text(&drawn(&busy(), "\r\u{1b}[F", (40, 10), PLAIN));
    assert!(shown.contains("/deep\n") && !shown.contains("folder"), "{shown}");
}

#[test]
fn without_colour_there_is_none_and_with_it_the_sixteen_of_the_terminal() {
    let sixteen = |colour: Color| !matches!(colour, Color::Rgb(..) | Color::Indexed(_));
    for model in [busy(), failed(), dead()] {
        for keys in ["1", "2", "3", "4", "5", "c"] {
            let plain = drawn(&model, keys, (120, 40), PLAIN);
            assert!(plain.content().iter().all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset)));
            let coloured = drawn(&model, keys, (120, 40), TerminalStyle { colour: true, ..PLAIN });
            assert!(coloured.content().iter().all(|cell| sixteen(cell.fg) && sixteen(cell.bg)));
            assert_eq!(text(&plain), text(&coloured), "colour changes no word");
        }
    }
    let red = drawn(&failed(), "", (80, 24), TerminalStyle { colour: true, ..PLAIN });
    assert!(red.content().iter().any(|cell| cell.fg == Color::Red));
}

#[test]
fn where_the_locale_is_not_utf_8_no_sign_of_ours_is_beyond_ascii() {
    let ascii = TerminalStyle { colour: false, unicode: false };
    for model in [failed(), dead(), crowd()] {
        for keys in ["1", "2", "3", "4", "5", "?", "h"] {
            let shown = text(&drawn(&model, keys, (120, 40), ascii));
            assert!(shown.is_ascii(), "{shown}");
        }
    }
}
