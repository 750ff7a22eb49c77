//! Any sequence of operations, with crashes: the tree stays whole, no item has two owners, the history is complete, and
//! an undone completion gives back what was before.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Create { kind: usize, below: Option<usize> },
    Claim { item: usize, who: usize },
    Complete { item: usize, who: usize, good: bool, children: usize, bad: bool, partial: bool, next: usize },
    Retry { item: usize, who: usize },
    Release { item: usize, who: usize },
    Escalate { item: usize, who: usize },
    Rollback { item: usize },
    Undo { item: usize, children: usize },
    Comment { item: usize },
    End { who: usize },
    Begin { slug: usize },
    Later { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let (item, who) = (0..64_usize, 0..8_usize);
    prop_oneof![
        3 => (0..6_usize, proptest::option::of(0..64_usize)).prop_map(|(kind, below)| Step::Create { kind, below }),
        6 => (item.clone(), who.clone()).prop_map(|(item, who)| Step::Claim { item, who }),
        5 => (item.clone(), who.clone(), any::<bool>(), 0..4_usize, proptest::bool::weighted(0.3), any::<bool>(), 0..6_usize)
            .prop_map(|(item, who, good, children, bad, partial, next)| {
                Step::Complete { item, who, good, children, bad, partial, next }
            }),
        1 => (item.clone(), who.clone()).prop_map(|(item, who)| Step::Retry { item, who }),
        2 => (item.clone(), who.clone()).prop_map(|(item, who)| Step::Release { item, who }),
        1 => (item.clone(), who.clone()).prop_map(|(item, who)| Step::Escalate { item, who }),
        2 => item.clone().prop_map(|item| Step::Rollback { item }),
        3 => (item.clone(), 0..3_usize).prop_map(|(item, children)| Step::Undo { item, children }),
        1 => item.prop_map(|item| Step::Comment { item }),
        1 => who.prop_map(|who| Step::End { who }),
        1 => (0..3_usize).prop_map(|slug| Step::Begin { slug }),
        1 => (0..90_000_u64).prop_map(|ms| Step::Later { ms }),
    ]
}

fn crash() -> impl Strategy<Value = Option<Crash>> {
    prop_oneof![8 => Just(None), 1 => Just(Some(Crash::BeforeCommit)), 1 => Just(Some(Crash::AfterCommit))]
}

const KINDS: [&str; 6] = ["project_spec", "feature", "prd", "story", "bug", "task"];
const SLUGS: [&str; 3] = ["pm", "sm", "dev"];

struct Play {
    world: World,
    agents: Vec<AgentId>,
}

impl Play {
    fn item(&self, index: usize) -> ItemId {
        let all = self.world.all();
        match all.len() {
            0 => ItemId(Uuid::nil()),
            many => all[index % many].item_id,
        }
    }

    /// An agent, or the operator.
    fn who(&self, index: usize) -> String {
        match index {
            0 => "human".to_owned(),
            index => self.agents[index % self.agents.len()].to_string(),
        }
    }

    /// The owner of an item in seven of eight cases, because otherwise most requests would be refused.
    fn owner(&self, item: ItemId, index: usize) -> String {
        let owner = self.world.all().into_iter().find(|row| row.item_id == item).and_then(|row| row.claimed_by);
        owner.filter(|_| index != 1).map_or_else(|| self.who(index), |owner| owner.to_string())
    }

    fn act(&mut self, step: &Step, crash: Option<Crash>) {
        let request = match step {
            Step::Create { kind, below } => {
                let parent = below.map(|index| self.item(index));
                json!({"kind": "work_create", "type": KINDS[*kind], "title": "t", "parent_id": parent})
            }
            Step::Claim { item, who } => {
                json!({"kind": "work_claim", "item_id": self.item(*item), "agent_id": self.who(*who)})
            }
            Step::Complete { item, who, good, children, bad, partial, next } => {
                let id = self.item(*item);
                let mut request = completion(id, &self.owner(id, *who), *children);
                if !good {
                    request["output"] = json!({});
                }
                if *bad {
                    request["children"].as_array_mut().expect("a list").push(json!({"type": "epic", "title": "t"}));
                }
                request["partial"] = json!(partial);
                if let Some(next) = ["done", "ready", "escalated"].get(*next) {
                    request["next_status"] = json!(next);
                }
                request
            }
            Step::Retry { item, who } => {
                let children = json!([{"type": "story", "title": "t"}, {"type": "prd", "title": "t"}]);
                json!({"kind": "work_retry_children", "item_id": self.item(*item), "agent_id": self.who(*who),
                    "children": children, "partial": true})
            }
            Step::Release { item, who } => {
                let id = self.item(*item);
                json!({"kind": "work_release", "item_id": id, "agent_id": self.owner(id, *who)})
            }
            Step::Escalate { item, who } => {
                let id = self.item(*item);
                json!({"kind": "work_escalate", "item_id": id, "agent_id": self.owner(id, *who), "reason": "r"})
            }
            Step::Rollback { item } => json!({"kind": "work_rollback", "item_id": self.item(*item), "reason": "r"}),
            Step::Comment { item } => {
                json!({"kind": "work_comment", "item_id": self.item(*item), "author": "a", "text": "t"})
            }
            Step::Undo { item, children } => return self.do_and_undo(*item, *children, crash),
            Step::End { who } => {
                let agent = self.agents[*who % self.agents.len()];
                return self.world.end(agent, crash);
            }
            Step::Begin { slug } => {
                let agent = self.world.agent(SLUGS[*slug], None);
                return self.agents.push(agent);
            }
            Step::Later { ms } => {
                self.world.now.wall_ms += i64::try_from(*ms).expect("small");
                self.world.now.boot_ms += ms;
                return drop(self.world.decide(Event::Deadlines, crash));
            }
        };
        // The request may be refused: only the state after it matters.
        let _ = self.world.ask_with(&request, crash);
    }

    /// Completes an item that somebody has, and undoes that at once, with a crash in between.
    fn do_and_undo(&mut self, item: usize, children: usize, crash: Option<Crash>) {
        let claimed: Vec<Item> = self
            .world
            .all()
            .into_iter()
            .filter(|row| row.status == Status::Claimed && row.completion.is_none())
            .collect();
        if claimed.is_empty() {
            return;
        }
        let before = &claimed[item % claimed.len()];
        let owner = before.claimed_by.expect("claimed").to_string();
        if self.world.ask_with(&completion(before.item_id, &owner, children), crash).is_err() {
            return;
        }
        let undone =
            self.world.ask_with(&json!({"kind": "work_rollback", "item_id": before.item_id, "reason": "r"}), crash);
        undone.expect("nobody can have taken a child");
        let mut after = self.world.item(before.item_id);
        assert_eq!(after.history[..before.history.len()], before.history[..], "history is only added to");
        after.history.clone_from(&before.history);
        after.since_ms = before.since_ms;
        assert_eq!(after, *before);
    }
}

/// A request to complete an item, with an output that is good for every type, and stories and prds as children.
fn completion(id: ItemId, who: &str, children: usize) -> Value {
    let output = json!({"requirements": [1], "prd": 1, "stories": [1], "completed": true});
    let children: Vec<Value> =
        (0..children).map(|n| json!({"type": if n % 2 == 0 { "story" } else { "prd" }, "title": "t"})).collect();
    json!({"kind": "work_complete", "item_id": id, "agent_id": who, "output": output, "children": children, "partial": true})
}

/// Rules under which tasuki undoes a completion whose children nobody claims or keeps.
fn strict() -> Rules {
    let text = "[types.prd]\nprocessed_by = [\"scrum_master\"]\ncreates = [\"story\", \"prd\"]\ntaken_within = \"60s\"\n\
                rollback_on = [\"timed_out\", \"gone\", \"refused\"]\nrequire.non_empty = [\"/stories\"]\n";
    Rules::with(text).expect("rules")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn work_stays_consistent_after_any_request_and_any_crash(
        steps in proptest::collection::vec((step(), crash()), 1..80),
        undoes in any::<bool>(),
    ) {
        let (world, agents) = World::with_rules(if undoes { strict() } else { Rules::default() });
        let mut play = Play { world, agents: agents.to_vec() };
        let mut before: BTreeMap<ItemId, Item> = BTreeMap::new();
        for (step, crash) in &steps {
            play.act(step, *crash);
            if let Err(why) = check(&play.world) {
                return Err(TestCaseError::fail(format!("after {step:?}: {why}")));
            }
            let after: BTreeMap<ItemId, Item> =
                play.world.all().into_iter().map(|item| (item.item_id, item)).collect();
            for (id, old) in &before {
                let kept = after.get(id).is_some_and(|new| new.history.starts_with(&old.history));
                prop_assert!(kept, "{id} has lost a part of its history after {step:?}");
            }
            before = after;
        }
        let seqs: Vec<u64> = play.world.journal.iter().map(|line| line["seq"].as_u64().expect("a seq")).collect();
        prop_assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "the journal has a gap");
    }
}
