//! A year in minutes: what a home holds, and what it costs, does not grow with the time that it has run.
//!
//! These are real: the loop's own cycles; the store with its commits, packs and starts; the spool with its requests,
//! events, results, journal and views; and every file. These are simulated: the clocks, which each cycle is given; the
//! times of files, which only the kernel could set otherwise; and agents with their handoffs, which are inserted as the
//! rows that a handoff leaves behind. No tmux server runs.

use super::tests::{Ground, NOTHING};
use crate::core::decision::Decision;
use crate::core::id::AgentId;
use crate::core::rows::agent::{Agent, AgentState};
use crate::core::rows::handoff::Handoff;
use crate::core::time::{Now, rfc3339};
use crate::spool::age::MOST_VIEWS;
use crate::store::Batch;
use serde_json::json;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use uuid::Uuid;

const TICK_MS: u64 = super::timers::TICK_MS;
const DAY_MS: u64 = 24 * 3_600_000;
/// For how many days files of one kind may be there: a file is kept for 7 days and removed within the next one, and the
/// present day comes on top.
const KEPT_DAYS: usize = 9;
/// What the guide promises of a year (chapter "storage"): how much more memory, in MiB, the loop holds at its end than
/// after half of it; how many bytes of the state file each handoff takes; how long the last start takes; how long an
/// answer takes.
const MEMORY_MIB: u64 = 64;
const BYTES_EACH: u64 = 2_048;
const START: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_millis(250);

/// The state file grows in steps. It may grow by this much more than the handoffs explain, in bytes.
const STATE_STEPS: u64 = 8 << 20;

/// When each day began, by the kernel's clock and by the simulated one, in nanoseconds.
static DAYS: Mutex<Vec<(i64, i64)>> = Mutex::new(Vec::new());

/// When a file was changed, by the simulated clock.
fn played(changed_ns: i64) -> i64 {
    let days = DAYS.lock().expect("nobody panics with it");
    let day = days.partition_point(|(real, _)| *real <= changed_ns).saturating_sub(1);
    days.get(day).map_or(changed_ns, |(real, played)| played + (changed_ns - real).clamp(0, 3_600_000_000_000))
}

struct Load {
    days: usize,
    living: u32,
    handoffs: usize,
    requests: usize,
    events: usize,
    /// Ticks of each day; the rest of it passes in one jump.
    ticks: usize,
}

struct Year {
    ground: Ground,
    now: Now,
    load: Load,
}

impl Year {
    async fn begin(load: Load) -> Year {
        let mut ground = Ground::new().await;
        ground.sidecar.spool.set_file_times(played);
        let now = ground.sidecar.clock.now();
        let agents = (0..load.living).map(|number| living(number, &now)).map(|agent| (agent.agent_id, agent));
        let decision = Decision { agents: agents.collect(), ..Decision::default() };
        ground.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
        ground.sidecar.state.apply(&decision);
        ground.sidecar.projection.show(&ground.sidecar.spool, &now, &decision, &ground.sidecar.state.settings);
        Year { ground, now, load }
    }

    fn pass(&mut self, ms: u64) {
        self.now.boot_ms += ms;
        self.now.wall_ms += i64::try_from(ms).expect("small");
    }

    fn cycle(&mut self) {
        self.ground.sidecar.cycle(&self.now);
    }

    /// One day; returns how long a request took that came at its end.
    fn day(&mut self, day: usize) -> Duration {
        let real = self.ground.sidecar.clock.now().wall_ms * 1_000_000;
        DAYS.lock().expect("nobody panics with it").push((real, self.now.wall_ms * 1_000_000));
        for number in 0..self.load.requests {
            self.ground.ask(&format!("d{day}-{number}.json"), NOTHING);
        }
        for number in 0..self.load.events {
            let event =
                r#"{"v":1,"event":"notification","agent_id":"00000000-0000-4000-8000-000000000000","message":"m"}"#;
            std::fs::write(self.ground.path("spool/events").join(format!("d{day}-{number}.json")), event)
                .expect("an event");
        }
        self.hand_off(day);
        self.take_all();
        for _ in 0..self.load.ticks {
            self.pass(TICK_MS);
            self.cycle();
        }
        self.ground.ask(&format!("d{day}-last.json"), NOTHING);
        let begun = Instant::now();
        self.take_all();
        let took = begun.elapsed();
        assert!(self.ground.path(&format!("spool/results/d{day}-last.json")).exists(), "answered on day {day}");
        let played = u64::try_from(self.load.ticks).expect("small") * TICK_MS;
        self.pass(DAY_MS.saturating_sub(played));
        took
    }

    /// Runs cycles until the spool is empty.
    fn take_all(&mut self) {
        for _ in 0..10_000 {
            self.ground.sidecar.intake.files = true;
            self.cycle();
            if self.ground.count("spool/requests") == 0 && self.ground.count("spool/events") == 0 {
                return;
            }
        }
        panic!("the spool is never empty");
    }

    /// The handoffs of a day, each with the agent that it ended and a text in a file.
    fn hand_off(&mut self, day: usize) {
        let texts = self.ground.path("data/personas/dev/texts");
        std::fs::create_dir_all(&texts).expect("a folder");
        let mut decision = Decision::default();
        for number in 0..self.load.handoffs {
            let agent = ended(&self.now);
            let handoff = handoff(&agent, &self.now);
            let text = texts.join(format!("{:012x}.md", day * 1_000_000 + number));
            std::fs::write(text, "A text that was too long for a pane.\n").expect("a text");
            decision.agents.insert(agent.agent_id, agent);
            decision.handoffs.insert(handoff.handoff_id, handoff);
        }
        let sidecar = &mut self.ground.sidecar;
        (decision.next_effect, decision.next_seq) = (sidecar.state.next_effect, sidecar.state.next_seq);
        sidecar.store.commit(&Batch { decision: &decision, now: self.now, seen: &[] }).expect("a commit");
        sidecar.projection.show(&sidecar.spool, &self.now, &decision, &sidecar.state.settings);
    }

    /// A proper end and a start; returns how long the start took.
    async fn restart(self) -> (Year, Duration) {
        let Year { ground, now, load } = self;
        let Ground { dir, sidecar, sources } = ground;
        drop(sources);
        sidecar.store.close();
        let begun = Instant::now();
        let (mut sidecar, sources) = super::tests::open(&dir).await;
        let took = begun.elapsed();
        sidecar.spool.set_file_times(played);
        (Year { ground: Ground { dir, sidecar, sources }, now, load }, took)
    }
}

fn living(number: u32, now: &Now) -> Agent {
    let mut agent = Agent::new(AgentId(Uuid::new_v4()), "demo".to_owned(), now.rfc3339());
    agent.persona_slug = Some(format!("dev-{}", number % 20).parse().expect("a slug"));
    agent.state = AgentState::Idle;
    agent.registered_at = Some(now.rfc3339());
    agent
}

fn ended(now: &Now) -> Agent {
    let mut agent = living(0, now);
    agent.state = AgentState::Ended;
    agent.ended_at = Some(now.rfc3339());
    agent
}

/// Made from a stored row, because stored rows can always be read, whatever fields the type has by now.
fn handoff(agent: &Agent, now: &Now) -> Handoff {
    let at = rfc3339(now.wall_ms);
    let steps = [
        "waiting",
        "instructing",
        "writing",
        "checking",
        "recording",
        "ending",
        "starting",
        "priming",
        "briefing",
        "reading",
    ];
    let mut spans: Vec<_> = steps.iter().map(|step| json!({"step": step, "entered_at": at, "left_at": at})).collect();
    spans.push(json!({"step": "done", "entered_at": at, "left_at": null}));
    let row = json!({
        "handoff_id": Uuid::new_v4(), "agent_id": agent.agent_id, "persona_slug": "dev", "reason": "context_limit",
        "focus": "the flaky test", "tasks": ["Make it pass 200 times"], "now": false, "author": "agent_file",
        "successor": "new", "created_at": at, "file_path": "/home/kai/.tasuki/data/personas/dev/handoffs/d.md",
        "file_name": "d.md", "step": "done", "steps": spans, "deadline": null, "wait_until": null, "effect": null,
        "reading": null, "verdicts": {}, "error": null, "document": null,
        "record": {
            "bytes": 6_312, "sha256": format!("{:064x}", Uuid::new_v4().as_u128()), "created_at": at,
            "injection_prompt": "You are the successor of an agent; its document says what comes next. ".repeat(12),
        },
        "successor_id": Uuid::new_v4(), "former_successors": [], "place": null, "warnings": [],
    });
    serde_json::from_value(row).expect("a row of an older version")
}

/// The memory that this process holds, in MiB.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

fn inodes(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| 1 + if entry.file_type().is_ok_and(|kind| kind.is_dir()) { inodes(&entry.path()) } else { 0 })
        .sum()
}

async fn play(load: Load) {
    let Load { days, living, handoffs, requests, .. } = load;
    let living = usize::try_from(living).expect("small");
    let mut year = Year::begin(load).await;
    let (mut memory, mut state, mut start, mut slowest) = (0, 0, Duration::ZERO, Vec::new());
    let state_file = |year: &Year| std::fs::metadata(year.ground.path("state/tasuki.redb")).expect("a file").len();
    let half = days / 2;
    for day in 0..days {
        slowest.push(year.day(day));
        if day % 7 == 6 {
            (year, start) = year.restart().await;
        }
        if day == half {
            (memory, state) = (resident_mib(), state_file(&year));
        }
    }
    let views = MOST_VIEWS.min(KEPT_DAYS * handoffs) + 2 * handoffs;
    let counts = |below: &str| year.ground.count(below);
    let (agents, runs, results) = (counts("view/agents"), counts("view/handoffs"), counts("spool/results"));
    let texts = counts("data/personas/dev/texts");
    let all = inodes(&year.ground.path(""));
    // What is remembered for 30 days grows until then, and the file grows in steps.
    let grown = state_file(&year).saturating_sub(state).saturating_sub(STATE_STEPS)
        / u64::try_from((days - half) * handoffs).expect("small");
    slowest.sort_unstable();
    let answer = slowest[slowest.len() / 2];
    println!("agents {agents}, handoffs {runs}, results {results}, texts {texts}, inodes {all}, {grown} bytes each");
    println!("memory {memory} -> {} MiB, start {start:?}, answer {answer:?}", resident_mib());
    assert!(agents <= living + views && runs <= views, "views: {agents} {runs}");
    assert!(results <= KEPT_DAYS * (requests + 1) && texts <= KEPT_DAYS * handoffs, "files: {results} {texts}");
    assert!(all <= living + 2 * views + KEPT_DAYS * (requests + 1 + handoffs) + 200, "inodes: {all}");
    assert!(grown <= BYTES_EACH, "the state file: {grown} bytes for each handoff");
    assert!(resident_mib() <= memory + MEMORY_MIB, "memory: {memory} -> {} MiB", resident_mib());
    assert!(start <= START && answer <= ANSWER, "start {start:?}, answer {answer:?}");
}

#[tokio::test]
async fn weeks_of_work_stay_within_their_bounds() {
    play(Load { days: 18, living: 1_000, handoffs: 40, requests: 40, events: 60, ticks: 122 }).await;
}

#[tokio::test]
async fn a_year_of_work_stays_within_its_bounds() {
    if std::env::var_os("TASUKI_LONG").is_none_or(|value| value != "1") {
        return println!("skipped: a year in minutes, only in the long suite");
    }
    play(Load { days: 365, living: 1_000, handoffs: 400, requests: 300, events: 800, ticks: 260 }).await;
}

#[test]
fn the_guide_names_the_bounds_that_are_held() {
    let chapter = include_str!("../../data/guide/storage.md");
    let said = [
        format!("memory has grown by at most {MEMORY_MIB} MiB"),
        format!("at most {BYTES_EACH} bytes for each handoff"),
        format!("start took at most {} s", START.as_secs()),
        format!("request took at most {} ms", ANSWER.as_millis()),
    ];
    for bound in said {
        assert!(chapter.contains(&bound), "{bound}");
    }
}
