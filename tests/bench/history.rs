//! A store as it is after 100,000 finished handoffs.

use serde_json::json;
use std::path::Path;
use tasuki::core::decision::Decision;
use tasuki::core::id::{AgentId, DeliveryId, Slug};
use tasuki::core::pane::{DeliveryVerdict, PaneRef, Process, ServerId, Verdict};
use tasuki::core::request::{Author, Successor};
use tasuki::core::rows::agent::{Agent, AgentState, Primed};
use tasuki::core::rows::handoff::{Handoff, Span, Step};
use tasuki::core::time::{Now, rfc3339};
use tasuki::store::{Batch, Checkpoint, Store};
use uuid::Uuid;

/// Handoffs in one commit: the store is filled as fast as it can be, and no faster.
const IN_ONE_COMMIT: usize = 1_000;

/// Fills a home's store with so many handoffs, each with the agent that it ended, and says that the views were built.
pub(crate) fn fill(home: &Path, handoffs: usize) {
    let mut store = Store::open(&home.join("state")).expect("a new store");
    let mut previous = None;
    for first in (0..handoffs).step_by(IN_ONE_COMMIT) {
        let mut decision = Decision::default();
        for number in first..handoffs.min(first + IN_ONE_COMMIT) {
            let agent = agent(number, previous);
            let handoff = handoff(number, &agent, home);
            previous = Some(agent.agent_id);
            decision.agents.insert(agent.agent_id, agent);
            decision.handoffs.insert(handoff.handoff_id, handoff);
        }
        let now = Now { wall_ms: wall_ms(first), boot: 1, boot_ms: 1 };
        store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("committed");
        let mut views: Vec<String> = decision.agents.keys().map(|id| format!("agents/{id}")).collect();
        views.extend(decision.handoffs.keys().map(|id| format!("handoffs/{id}")));
        store.checkpoint(&Checkpoint { views, ..Checkpoint::default() }).expect("confirmed");
        // As the ticks of a running sidecar do.
        while store.pack().expect("packed") > 0 {}
    }
    let tag = store.home_tag().expect("a tag");
    std::fs::write(home.join("view/.built"), tag).expect("written");
}

/// One every five minutes.
fn wall_ms(number: usize) -> i64 {
    1_790_000_000_000 + i64::try_from(number).expect("small") * 300_000
}

fn agent(number: usize, previous: Option<AgentId>) -> Agent {
    let (id, made, ended) = (Uuid::new_v4(), rfc3339(wall_ms(number)), rfc3339(wall_ms(number) + 200_000));
    let pid = 10_000 + u32::try_from(number).expect("small");
    let server = ServerId { pid: 812, start_time: 1_790_000_000 };
    let mut agent = Agent::new(AgentId(id), "claude".to_owned(), made.clone());
    agent.persona_slug = Some(slug());
    agent.pane = Some(PaneRef { server, pane: pid, pid });
    agent.process = Some(Process { pid, start_ticks: u64::from(pid) * 97 });
    agent.cwd = Some("/home/kai/src/checkout-service".to_owned());
    agent.tmux_session = Some("work".to_owned());
    agent.session.id = Some(Uuid::new_v4().to_string());
    agent.transcript_path = Some(format!("/home/kai/.claude/projects/-home-kai-src-checkout-service/{id}.jsonl"));
    agent.state = AgentState::Ended;
    agent.previous_agent_id = previous;
    agent.successor_id = Some(AgentId(Uuid::new_v4()));
    agent.registered_at = Some(made);
    agent.ended_at = Some(ended);
    agent.ours = true;
    agent.hooks_seen = true;
    agent.primed = Primed::Done;
    agent
}

fn slug() -> Slug {
    "checkout-dev".parse().expect("a slug")
}

const STEPS: [Step; 8] = [
    Step::Waiting,
    Step::Instructing,
    Step::Writing,
    Step::Recording,
    Step::Ending,
    Step::Starting,
    Step::Priming,
    Step::Briefing,
];

fn handoff(number: usize, agent: &Agent, home: &Path) -> Handoff {
    let at = |step: usize| rfc3339(wall_ms(number) + i64::try_from(step).expect("small") * 20_123);
    let name = format!("20260921T093{:03}-{}.md", number % 1000, agent.agent_id.short());
    let path = home.join("data/personas/checkout-dev/handoffs").join(&name).display().to_string();
    let spans = STEPS.iter().enumerate();
    let steps: Vec<Span> =
        spans.map(|(n, step)| Span { step: *step, entered_at: at(n), left_at: Some(at(n + 1)) }).collect();
    // As a stored row, for those can always be read, whatever fields the type has by now.
    let row = json!({
        "handoff_id": Uuid::new_v4(),
        "agent_id": agent.agent_id,
        "persona_slug": slug(),
        "reason": "context_limit",
        "focus": "the flaky checkout test, and why the first repair did not hold",
        "tasks": ["Make the checkout test pass 200 times in a row", "Tell the release manager"],
        "now": false,
        "author": Author::AgentFile,
        "successor": Successor::New,
        "created_at": at(0),
        "file_path": path,
        "file_name": name,
        "step": Step::Done,
        "steps": steps,
        "deadline": null,
        "wait_until": null,
        "effect": null,
        "reading": null,
        "verdicts": { "instruction": delivered(at(2)), "priming": delivered(at(7)), "briefing": delivered(at(8)) },
        "error": null,
        "document": null,
        "record": {
            "bytes": 6_312,
            "sha256": format!("{:064x}", Uuid::new_v4().as_u128()),
            "injection_prompt": prompt(agent, &path),
            "created_at": at(3),
        },
        "successor_id": agent.successor_id,
        "former_successors": [],
        "place": null,
        "warnings": [],
    });
    serde_json::from_value(row).expect("a row of an older version")
}

fn delivered(at: String) -> DeliveryVerdict {
    let delivery_id = DeliveryId::from_bits(Uuid::new_v4().as_u64_pair().0);
    DeliveryVerdict { delivery_id, verdict: Verdict::Delivered, reason: None, at }
}

/// As long as the built-in one is with two tasks.
fn prompt(agent: &Agent, path: &str) -> String {
    format!(
        "You are the successor of agent {} (persona checkout-dev). It handed its work over to you; the reason it gave: \
         context_limit. Its handoff document is in `{path}`. Read that file first, whole, before you do anything else. \
         It says what was being worked on, how far it came, what was decided and why, what stands in the way, which \
         files were changed, and what comes next.\n\nYour tasks:\n1. Make the checkout test pass 200 times in a row\n\
         2. Tell the release manager\n\nThen go on from its next steps. Where the document and the state of the files \
         disagree, trust the files, and say so.",
        agent.agent_id
    )
}
