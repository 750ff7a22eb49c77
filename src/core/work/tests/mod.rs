//! Tests of work items: decisions one after the other, on a model of the store, with a crash wherever a test wants one.

mod context;
mod import;
mod limits;
mod notices;
mod operations;
mod people;
mod property;
mod transfer;

use crate::core::decision::{Cycle, Decision};
use crate::core::event::{Event, IncomingRequest, RequestFacts};
use crate::core::hook::{HookEvent, HookKind, SessionReason};
use crate::core::id::{AgentId, ItemId, RequestId};
use crate::core::pane::{PaneRef, ServerId};
use crate::core::reply::{Refused, Reply};
use crate::core::request;
use crate::core::rows::agent::{Agent, AgentState, Primed};
use crate::core::rows::item::{Item, Status, Who};
use crate::core::rules::Rules;
use crate::core::settings::{ProfileFacts, Settings};
use crate::core::state::State;
use crate::core::time::Now;
use crate::core::view;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

const SERVER: ServerId = ServerId { pid: 7, start_time: 1 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crash {
    /// What was decided is lost, and its request comes again.
    BeforeCommit,
    /// What was decided is durable; the memory is lost.
    AfterCommit,
}

/// A sidecar's memory, and what the store holds.
#[derive(Clone)]
pub(super) struct World {
    pub(super) state: State,
    durable: State,
    past: BTreeMap<ItemId, Item>,
    pub(super) now: Now,
    turns: u64,
    pub(super) answers: BTreeMap<RequestId, Reply>,
    pub(super) journal: Vec<Value>,
    pub(super) told: Vec<String>,
}

impl World {
    /// With a project manager, a scrum master and two developers, in this order.
    pub(super) fn new() -> (Self, [AgentId; 4]) {
        World::with_rules(Rules::default())
    }

    pub(super) fn with_rules(rules: Rules) -> (Self, [AgentId; 4]) {
        let profile = ProfileFacts::demo();
        let profiles = BTreeMap::from([("demo".to_owned(), profile)]);
        let state = State {
            server: Some(SERVER),
            settings: Settings { profiles, rules, ..Settings::default() },
            ..State::default()
        };
        let mut world = World {
            durable: state.clone(),
            state,
            past: BTreeMap::new(),
            now: Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms: 1_000 },
            turns: 0,
            answers: BTreeMap::new(),
            journal: Vec::new(),
            told: Vec::new(),
        };
        let roles = [("pm", "project_manager"), ("sm", "scrum_master"), ("dev", "developer")];
        let roles = roles.map(|(slug, role)| (slug.parse().expect("a slug"), role.to_owned()));
        world.decide(Event::Roles(BTreeMap::from(roles)), None);
        let agents = ["pm", "sm", "dev", "dev"].map(|slug| world.agent(slug, None));
        (world, agents)
    }

    /// Adds an idle agent of a persona. Only an agent with a pane can be told of items.
    pub(super) fn agent(&mut self, slug: &str, pane: Option<u32>) -> AgentId {
        let agent_id = AgentId(Uuid::from_u128(u128::from(self.turns) + 0xa000));
        let mut agent = Agent::new(agent_id, "demo".to_owned(), self.now.rfc3339());
        agent.persona_slug = slug.parse().ok();
        agent.state = AgentState::Idle;
        agent.pane = pane.map(|pane| PaneRef { server: SERVER, pane, pid: 40 + pane });
        agent.session.id = Some(format!("s-{agent_id}"));
        agent.hooks_seen = true;
        agent.primed = Primed::Done;
        self.turns += 1;
        self.state.agents.insert(agent_id, agent.clone());
        self.durable.agents.insert(agent_id, agent);
        agent_id
    }

    pub(super) fn decide(&mut self, event: Event, crash: Option<Crash>) -> Decision {
        self.turns += 1;
        self.now.wall_ms += 10;
        self.now.boot_ms += 10;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.turns.to_le_bytes());
        let decision = crate::core::decide(&self.state, event, &Cycle { now: self.now, entropy });
        if crash == Some(Crash::BeforeCommit) {
            self.restart();
            return decision;
        }
        self.state.apply(&decision);
        for item in decision.items.values() {
            self.past.remove(&item.item_id);
            if item.is_past() {
                self.past.insert(item.item_id, item.clone());
            }
        }
        for answer in &decision.answers {
            let before = self.answers.insert(answer.request_id.clone(), answer.reply.clone());
            assert!(before.is_none(), "{} is answered twice", answer.request_id);
        }
        self.journal.extend(decision.journal.iter().map(|(_, line)| line.clone()));
        for (_, effect) in &decision.effects {
            if let crate::core::effect::Effect::NotifyOperator(notice) = &effect.effect {
                self.told.push(notice.text.clone());
            }
        }
        let past: Vec<ItemId> = self.past.keys().copied().collect();
        self.state.evict_items(&past);
        self.durable = self.state.clone();
        if crash == Some(Crash::AfterCommit) {
            self.restart();
        }
        decision
    }

    fn restart(&mut self) {
        self.state = self.durable.clone();
        self.state.items = crate::core::rows::items::Items::default();
        for item in self.durable.items.values() {
            // A store keeps the row as JSON.
            let row = serde_json::to_vec(item).expect("a row");
            self.state.items.insert(serde_json::from_slice(&row).expect("readable"));
        }
        let now = self.now;
        self.state.rebase(&now);
    }

    /// Sends a request and returns the answer; after a crash that lost the decision, the same request is read again.
    pub(super) fn ask_with(&mut self, request: &Value, crash: Option<Crash>) -> Result<Value, Refused> {
        let id: RequestId = format!("r{}", self.turns).parse().expect("an id");
        let mut bytes = request.clone();
        bytes["v"] = json!(1);
        let read = request::read(bytes.to_string().as_bytes());
        let arrived = IncomingRequest { id: id.clone(), sha256: String::new(), read, facts: RequestFacts::default() };
        self.load_history(request);
        self.decide(Event::Request(Box::new(arrived.clone())), crash);
        if crash == Some(Crash::BeforeCommit) {
            self.load_history(request);
            self.decide(Event::Request(Box::new(arrived)), None);
        }
        match self.answers.get(&id).unwrap_or_else(|| panic!("no answer to {request}")) {
            Reply::Ok(value) | Reply::Partial(value) => Ok(value.clone()),
            Reply::Refused(refused) => Err(refused.clone()),
        }
    }

    pub(super) fn ask(&mut self, request: &Value) -> Result<Value, Refused> {
        self.ask_with(request, None)
    }

    /// Sends a request that must be refused; returns `(status, code)`.
    pub(super) fn refused(&mut self, request: &Value) -> (u16, String) {
        let before: Vec<Item> = self.all();
        let refused = self.ask(request).expect_err(&request.to_string());
        assert_eq!(before, self.all(), "a refusal changes nothing: {request}");
        (refused.status, refused.code)
    }

    /// Loads the rows of history that a request names into the working set, as the sidecar does.
    fn load_history(&mut self, request: &Value) {
        let named = [&request["item_id"], &request["parent_id"]];
        let items = request["items"].as_array().into_iter().flatten();
        let inner = items.flat_map(|item| [&item["item_id"], &item["parent_id"]]);
        for id in named.into_iter().chain(inner) {
            let row = id.as_str().and_then(|id| id.parse().ok()).and_then(|id: ItemId| self.past.get(&id));
            if let Some(row) = row {
                self.state.items.insert(row.clone());
            }
        }
    }

    pub(super) fn all(&self) -> Vec<Item> {
        let open = self.durable.items.values().filter(|item| !self.past.contains_key(&item.item_id));
        let mut all: Vec<Item> = open.chain(self.past.values()).cloned().collect();
        all.sort_by_key(|item| item.order);
        all
    }

    pub(super) fn item(&self, id: ItemId) -> Item {
        self.all().into_iter().find(|item| item.item_id == id).expect("the item")
    }

    pub(super) fn view(&self, id: ItemId) -> Value {
        json!(view::item(&self.item(id)))
    }

    /// An agent's session is over, and its process with it.
    pub(super) fn end(&mut self, agent_id: AgentId, crash: Option<Crash>) {
        self.hook(agent_id, HookKind::SessionEnd, crash, |event| event.reason = Some(SessionReason::Process));
    }

    pub(super) fn hook(
        &mut self,
        agent_id: AgentId,
        kind: HookKind,
        crash: Option<Crash>,
        change: impl Fn(&mut HookEvent),
    ) -> Decision {
        let mut event = HookEvent::new(kind);
        event.agent_id = Some(agent_id);
        event.session_id = Some(format!("s-{agent_id}"));
        change(&mut event);
        let decision = self.decide(Event::Hook(Box::new(event.clone())), crash);
        if crash == Some(Crash::BeforeCommit) {
            return self.decide(Event::Hook(Box::new(event)), None);
        }
        decision
    }

    pub(super) fn is_live(&self, agent: AgentId) -> bool {
        self.state.agents.get(&agent).is_some_and(|agent| agent.state.is_live())
    }

    pub(super) fn create(&mut self, kind: &str) -> ItemId {
        let made = self.ask(&json!({"kind": "work_create", "type": kind, "title": format!("a {kind}")}));
        id_of(&made.expect("made"))
    }

    pub(super) fn claim(&mut self, id: ItemId, who: impl ToString + Copy) -> Result<Value, Refused> {
        self.ask(&json!({"kind": "work_claim", "item_id": id, "agent_id": who.to_string()}))
    }

    pub(super) fn complete(&mut self, id: ItemId, who: impl ToString + Copy, more: &Value) -> Result<Value, Refused> {
        let mut request = json!({"kind": "work_complete", "item_id": id, "agent_id": who.to_string()});
        for (name, value) in more.as_object().into_iter().flatten() {
            request[name] = value.clone();
        }
        self.ask(&request)
    }

    /// A prd that was claimed by the scrum master.
    pub(super) fn claimed_prd(&mut self, sm: AgentId) -> ItemId {
        let prd = self.create("prd");
        self.claim(prd, sm).expect("claimed");
        prd
    }

    /// A prd that is done, and its stories.
    pub(super) fn stories(&mut self, sm: AgentId, count: usize) -> (ItemId, Vec<ItemId>) {
        let prd = self.claimed_prd(sm);
        let children: Vec<Value> =
            (0..count).map(|number| json!({"type": "story", "title": format!("story {number}")})).collect();
        let made = self.complete(prd, sm, &json!({"output": {"stories": ["s"]}, "children": children}));
        let made = made.expect("completed");
        (prd, made["children"].as_array().expect("a list").iter().map(id_of).collect())
    }
}

pub(super) fn id_of(value: &Value) -> ItemId {
    value["item_id"].as_str().and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("no id in {value}"))
}

/// What must hold of all items at every moment.
pub(super) fn check(world: &World) -> Result<(), String> {
    let all: BTreeMap<ItemId, Item> = world.all().into_iter().map(|item| (item.item_id, item)).collect();
    for (id, item) in &all {
        let wrong = |what: &str| Err(format!("{what}: {item:#?}"));
        let parent = item.parent_id.map(|parent| all.get(&parent));
        if let Some(parent) = parent {
            let Some(parent) = parent else { return wrong("its parent is missing") };
            let is_listed = parent.children.iter().filter(|child| *child == id).count();
            if is_listed != usize::from(item.status != Status::Withdrawn) {
                return wrong("its parent does not list it once");
            }
            if item.project_id != parent.project_id {
                return wrong("it is of another project than its parent");
            }
        } else if item.project_id != *id {
            return wrong("a root is its own project");
        }
        if item.children.iter().any(|child| all.get(child).is_none_or(|child| child.parent_id != Some(*id))) {
            return wrong("it lists a child that is not its own");
        }
        if (item.status == Status::Claimed) != item.claimed_by.is_some() {
            return wrong("claimed without an owner, or with an owner and not claimed");
        }
        let owner = item.claimed_by.and_then(Who::agent);
        if owner.is_some_and(|owner| !world.is_live(owner)) && item.held_by.is_none() {
            return wrong("its owner has ended");
        }
        history(item).or_else(|what| wrong(&what))?;
    }
    let mut taken = BTreeMap::new();
    for item in all.values() {
        if let Some(owner) = item.claimed_by.and_then(Who::agent) {
            let ids: Vec<ItemId> = world.state.items.claimed_by(&owner).filter(|id| *id == item.item_id).collect();
            if ids.len() != 1 || taken.insert(item.item_id, owner).is_some() {
                return Err(format!("{} has not exactly one owner", item.item_id));
            }
        }
    }
    Ok(())
}

/// Each entry must begin with the status with which the one before it ended, and the last entry must have the item's
/// status and owner.
fn history(item: &Item) -> Result<(), String> {
    let mut before = None;
    for entry in &item.history {
        if entry.from != before {
            return Err(format!("an entry of its history begins at {:?}, not at {before:?}", entry.from));
        }
        before = Some(entry.to);
    }
    let last = item.history.last().ok_or("it has no history")?;
    if last.to != item.status || last.owner != item.claimed_by {
        return Err("the last entry of its history has another status or owner".to_owned());
    }
    Ok(())
}
