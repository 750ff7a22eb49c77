//! What follows when the CLI of an agent reaches a limit, decided without a machine.

use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use crate::support::flow_world::{FlowWorld, Instead, Turn, outgoing};
use serde_json::{Value, json};
use tasuki::contract::LimitKind;
use tasuki::core::decision::Decision;
use tasuki::core::effect::{AutoHandoffCheck, Effect, EffectKey, LimitFound, Notice, Outcome};
use tasuki::core::event::Event;
use tasuki::core::hook::{HookEvent, HookKind, SessionReason};
use tasuki::core::id::{AgentId, HandoffId};
use tasuki::core::pane::{PaneRef, ServerId};
use tasuki::core::persona::{PersonaFacts, ProfileChoice};
use tasuki::core::rows::agent::{Agent, AgentState, Primed, Purpose};
use tasuki::core::rows::handoff::{Handoff, Step};
use tasuki::core::settings::{OnUsageLimit, ProfileFacts, RESUME_TEXT};

const SERVER: ServerId = ServerId { pid: 7, start_time: 1 };
const HOUR_MS: i64 = 3_600_000;

struct World {
    core: Decided,
    agent: AgentId,
    /// Only the screen shows the limits.
    on_screen: bool,
}

impl World {
    fn new(policy: OnUsageLimit) -> World {
        let agent_id = AgentId(uuid::Uuid::from_u128(1));
        let mut agent = Agent::new(agent_id, "demo".to_owned(), String::new());
        agent.persona_slug = "dev".parse().ok();
        (agent.state, agent.ours, agent.hooks_seen, agent.primed) = (AgentState::Busy, true, true, Primed::Done);
        agent.pane = Some(PaneRef { server: SERVER, pane: 1, pid: 1 });
        agent.transcript_path = Some("/t.jsonl".to_owned());
        let mut core = Decided::new(SERVER, demo_facts(), [agent]);
        for name in ["other", "third"] {
            core.state
                .settings
                .profiles
                .insert(name.to_owned(), ProfileFacts { name: name.to_owned(), ..demo_facts() });
        }
        core.state.settings.on_usage_limit = policy;
        core.state.settings.resume_text = RESUME_TEXT.to_owned();
        World { core, agent: agent_id, on_screen: false }
    }

    fn row(&self) -> &Agent {
        &self.core.state.agents[&self.agent]
    }

    fn hook(&mut self, kind: HookKind) -> Decision {
        let event =
            HookEvent { agent_id: Some(self.agent), message: Some("used up".to_owned()), ..HookEvent::new(kind) };
        self.core.decide(Event::Hook(Box::new(event)))
    }

    fn effect(&self, is_it: impl Fn(&Effect) -> bool) -> Option<EffectKey> {
        self.core.state.outbox.iter().find(|(_, effect)| is_it(effect)).map(|(key, _)| *key)
    }

    /// A turn fails, and the look finds that limit, which ends in so many hours.
    fn reaches(&mut self, kind: LimitKind, hours: Option<i64>) -> Decision {
        self.hook(HookKind::StopFailure);
        self.settles_look(kind, hours)
    }

    /// The look finds that limit.
    fn settles_look(&mut self, kind: LimitKind, hours: Option<i64>) -> Decision {
        let key = self.effect(|effect| matches!(effect, Effect::ReadLimit { .. })).expect("it is looked for");
        let until_ms = hours.map(|hours| self.core.now.wall_ms + hours * HOUR_MS);
        let found = LimitFound { kind, until_ms, said: "used up".to_owned(), on_screen: self.on_screen };
        self.core.decide(Event::Settled { key, outcome: Outcome::Limit(Some(found)) })
    }

    /// The persona has these fallbacks.
    fn reads_fallbacks(&mut self, fallbacks: &[&str]) -> Decision {
        self.reads_persona(fallbacks, &[], None)
    }

    fn reads_persona(&mut self, fallbacks: &[&str], unstartable: &[&str], broken: Option<&str>) -> Decision {
        let key = self.effect(|effect| matches!(effect, Effect::CheckAutoHandoff { .. })).expect("the persona is read");
        let fallbacks =
            fallbacks.iter().map(|name| ProfileChoice { profile: (*name).to_owned(), model: None }).collect();
        let broken = broken.map(str::to_owned);
        let persona = PersonaFacts { exists: true, has_skill: true, broken, fallbacks, ..PersonaFacts::default() };
        let why = |name: &&str| ((*name).to_owned(), format!("{name} is not installed"));
        let unstartable = unstartable.iter().map(why).collect();
        let check = AutoHandoffCheck { unstartable, ..AutoHandoffCheck::new(Some(1), persona) };
        self.core.decide(Event::Settled { key, outcome: Outcome::AutoHandoffCheck(Box::new(check)) })
    }

    fn resumes(&self) -> usize {
        usize::from(self.row().typing.as_ref().is_some_and(|typing| typing.purpose == Purpose::Resume))
    }
}

/// What the operator is told in a decision.
fn told(decision: &Decision) -> Vec<(String, Value)> {
    let notice = |effect: &Effect| match effect {
        Effect::NotifyOperator(Notice { text, json, .. }) => Some((text.clone(), json.clone())),
        _ => None,
    };
    decision.effects.iter().filter_map(|(_, started)| notice(&started.effect)).collect()
}

#[test]
fn a_limit_is_shown_and_told_once_and_is_over_with_a_turn_that_ends_well() {
    let mut world = World::new(OnUsageLimit::Tell);
    let decision = world.reaches(LimitKind::UsageLimit, Some(2));
    let told_of = told(&decision);
    assert_eq!(told_of.len(), 1, "{told_of:?}");
    assert_eq!((&told_of[0].1["code"], &told_of[0].1["kind"]), (&"agent_limited".into(), &"usage_limit".into()));
    assert!(told_of[0].0.contains("demo, the CLI of dev, has reached its usage limit, until 20"), "{}", told_of[0].0);
    assert_eq!(world.row().state, AgentState::Idle, "its state stays what it is");
    assert!(world.row().limits.limited.is_some());
    let again = world.reaches(LimitKind::UsageLimit, Some(2));
    assert!(told(&again).is_empty(), "{again:?}");
    world.hook(HookKind::Stop);
    assert!(world.row().limits.limited.is_none());
    assert_eq!(told(&world.reaches(LimitKind::NoCredit, None)).len(), 1);
    assert_eq!(told(&world.reaches(LimitKind::LoggedOut, None)).len(), 1, "another kind is another limit");
}

#[test]
fn a_limit_is_told_once_although_its_signs_round_the_time_of_its_end() {
    let mut world = World::new(OnUsageLimit::Tell);
    assert_eq!(told(&world.reaches(LimitKind::UsageLimit, Some(2))).len(), 1);
    let first = world.row().limits.limited.clone();
    world.core.now.wall_ms += 90_000;
    assert_eq!(told(&world.reaches(LimitKind::UsageLimit, Some(2))), [], "the same hours, counted from a later moment");
    assert_eq!(world.row().limits.limited, first);
    assert_eq!(told(&world.reaches(LimitKind::UsageLimit, Some(3))).len(), 1, "it ends later now");
}

#[test]
fn an_earlier_limit_on_the_screen_does_not_outlive_a_turn_that_ends_well() {
    let mut world = World::new(OnUsageLimit::Tell);
    world.core.state.settings.profiles.get_mut("demo").expect("its profile").reports_failures = false;
    world.reaches(LimitKind::UsageLimit, Some(2));
    world.hook(HookKind::PromptSubmit);
    world.hook(HookKind::Stop);
    let key = world.effect(|effect| matches!(effect, Effect::ReadLimit { pane: None, .. }));
    let key = key.expect("only its transcript is looked at");
    world.core.decide(Event::Settled { key, outcome: Outcome::Limit(None) });
    assert!(world.row().limits.limited.is_none());
}

#[test]
fn a_turn_that_only_waits_for_the_end_of_the_limit_is_not_waited_for() {
    let mut world = World::new(OnUsageLimit::HandOff);
    world.hook(HookKind::Notification);
    world.settles_look(LimitKind::UsageLimit, Some(2));
    world.reads_fallbacks(&["other"]);
    assert_eq!(world.row().state, AgentState::Busy);
    let handoff = world.core.state.handoffs.values().next().expect("a handoff");
    assert_eq!(handoff.step, Step::Recording, "{handoff:?}");
}

#[test]
fn an_agent_that_waits_in_its_turn_is_ended_by_force_if_tasuki_has_started_it() {
    let kills = |ours: bool| {
        let mut world = World::new(OnUsageLimit::HandOff);
        world.hook(HookKind::Notification);
        world.settles_look(LimitKind::UsageLimit, Some(2));
        world.reads_fallbacks(&["other"]);
        let pane = world.row().pane.expect("a pane");
        world.core.state.agents.get_mut(&world.agent).expect("it is there").ours = ours;
        // As if the document were recorded, and the placeholder's window were the last thing that was asked for.
        let handoff = world.core.state.handoffs.values_mut().next().expect("a handoff");
        handoff.step = Step::Ending;
        let (key, tag) = (handoff.stay.effect.expect("its step runs something"), handoff.placeholder_tag());
        let row = world.core.state.outbox.get_mut(&key).expect("it runs");
        row.effect = Effect::HoldPlaceholder { pane, tag, profile: String::new(), cwd: None };
        world.core.decide(Event::Settled { key, outcome: Outcome::Failed { why: "no window".to_owned() } });
        world.effect(|effect| matches!(effect, Effect::KillPane { .. })).is_some()
    };
    assert!(kills(true) && !kills(false));
}

#[test]
fn where_it_is_set_the_agent_continues_after_the_end_of_the_limit_and_is_told_so_once() {
    let mut world = World::new(OnUsageLimit::Wait);
    world.reaches(LimitKind::UsageLimit, Some(1));
    world.core.pass(3_600_000);
    assert_eq!(world.resumes(), 0, "clocks differ");
    world.core.pass(10 * 60_000);
    assert_eq!(world.resumes(), 1);
    world.core.pass(24 * 3_600_000);
    assert_eq!(world.resumes(), 0, "its time has passed, and it is not typed again");
}

#[test]
fn an_agent_whose_handoff_comes_to_nothing_is_told_to_continue_all_the_same() {
    let mut world = World::new(OnUsageLimit::Wait);
    world.reaches(LimitKind::UsageLimit, Some(2));
    let handoff = HandoffId(uuid::Uuid::from_u128(9));
    let agent = world.agent;
    let set = move |world: &mut World, handoff| {
        world.core.state.agents.get_mut(&agent).expect("an agent").handoff_id = handoff;
    };
    set(&mut world, Some(handoff));
    world.core.pass(3 * 3_600_000);
    assert_eq!(world.resumes(), 0, "its handoff runs");
    set(&mut world, None);
    world.core.pass(120_000);
    assert_eq!(world.resumes(), 1);
}

#[test]
fn an_agent_that_has_continued_by_itself_is_told_nothing() {
    let mut world = World::new(OnUsageLimit::Wait);
    world.reaches(LimitKind::UsageLimit, Some(1));
    world.hook(HookKind::PromptSubmit);
    world.core.pass(2 * 3_600_000);
    assert_eq!(world.resumes(), 0, "it is at work");
    world.hook(HookKind::Stop);
    assert_eq!(world.resumes(), 0);
    let mut world = World::new(OnUsageLimit::Wait);
    let decision = world.reaches(LimitKind::UsageLimit, None);
    assert!(told(&decision)[0].0.contains("does not say until when"), "{decision:?}");
    world.core.pass(48 * 3_600_000);
    assert_eq!(world.resumes(), 0, "nobody knows when");
    let mut world = World::new(OnUsageLimit::Wait);
    world.reaches(LimitKind::Overloaded, Some(1));
    world.core.pass(2 * 3_600_000);
    assert_eq!(world.resumes(), 0, "another limit");
}

#[test]
fn where_it_is_set_the_work_goes_to_the_first_fallback_that_is_not_used_up() {
    let mut world = World::new(OnUsageLimit::HandOff);
    assert!(
        told(&world.reaches(LimitKind::UsageLimit, Some(2))).is_empty(),
        "told as soon as it is known what follows"
    );
    let decision = world.reads_fallbacks(&["demo", "other", "third"]);
    let handoff: &Handoff = world.core.state.handoffs.values().next().expect("a handoff");
    assert_eq!((handoff.choice.profile.as_str(), handoff.reason.as_str()), ("other", "usage_limit"));
    assert!(told(&decision)[0].0.contains("hands its work off to other"), "{decision:?}");
    assert_eq!(world.row().limits.used_up.len(), 1);
}

#[test]
fn a_fallback_without_a_profile_is_passed_over() {
    let mut world = World::new(OnUsageLimit::HandOff);
    world.reaches(LimitKind::UsageLimit, Some(2));
    world.reads_fallbacks(&["no-such", "other"]);
    let handoff: &Handoff = world.core.state.handoffs.values().next().expect("a handoff");
    assert_eq!(handoff.choice.profile, "other");
    let mut world = World::new(OnUsageLimit::HandOff);
    world.reaches(LimitKind::UsageLimit, Some(2));
    let told_of = told(&world.reads_fallbacks(&["demo", "no-such"]));
    assert!(
        told_of[0].0.contains("no fallback can take over: demo is used up too; there is no profile no-such"),
        "{told_of:?}"
    );
}

#[test]
fn a_fallback_that_cant_be_started_is_passed_over_and_named() {
    let mut world = World::new(OnUsageLimit::HandOff);
    world.reaches(LimitKind::UsageLimit, Some(2));
    world.reads_persona(&["other", "third"], &["other"], None);
    let handoff: &Handoff = world.core.state.handoffs.values().next().expect("a handoff");
    assert_eq!(handoff.choice.profile, "third");
    let mut world = World::new(OnUsageLimit::HandOff);
    world.core.state.settings.profiles.get_mut("third").expect("its profile").launchable = false;
    world.reaches(LimitKind::UsageLimit, Some(2));
    let told_of = told(&world.reads_persona(&["other", "third"], &["other"], None));
    let why = "other can't be started: other is not installed; profile third has no launch line";
    assert!(told_of.len() == 1 && told_of[0].0.contains(why), "{told_of:?}");
}

#[test]
fn a_chain_does_not_return_to_what_it_has_used_up() {
    let mut world = World::new(OnUsageLimit::HandOff);
    world.reaches(LimitKind::UsageLimit, Some(2));
    world.reads_fallbacks(&["other", "demo"]);
    let mut handoffs = std::mem::take(&mut world.core.state.handoffs);
    let used_up = world.row().limits.used_up.clone();
    // The successor, as it is when the handoff is done and the row of its predecessor is history.
    let (_, handoff) = handoffs.pop_first().expect("a handoff");
    let row = world.core.state.agents.get_mut(&world.agent).expect("it is there");
    (row.profile, row.handoff_id, row.recorded_in) = (handoff.choice.profile, None, None);
    (row.state, row.limits.limited, row.limits.used_up) = (AgentState::Busy, None, used_up);
    world.core.state.outbox = Default::default();
    world.reaches(LimitKind::UsageLimit, Some(1));
    let decision = world.reads_fallbacks(&["other", "demo"]);
    assert!(world.core.state.handoffs.is_empty());
    let told_of = told(&decision);
    assert!(told_of.len() == 1 && told_of[0].0.contains("other is used up too; demo is used up too"), "{told_of:?}");
    // As soon as the first limit has ended, its CLI is a fallback again.
    world.core.now.wall_ms += 3 * HOUR_MS;
    world.reaches(LimitKind::UsageLimit, Some(4));
    world.reads_fallbacks(&["other", "demo"]);
    assert_eq!(world.core.state.handoffs.values().next().map(|handoff| handoff.choice.profile.as_str()), Some("demo"));
}

#[test]
fn without_fallbacks_the_operator_is_told_why_nothing_happens() {
    let mut world = World::new(OnUsageLimit::HandOff);
    world.reaches(LimitKind::UsageLimit, Some(2));
    let decision = world.reads_fallbacks(&[]);
    assert!(told(&decision)[0].0.contains("names no fallbacks"), "{decision:?}");
    assert!(world.core.state.handoffs.is_empty());
}

#[test]
fn a_persona_that_can_not_be_read_is_not_handed_off_and_is_not_said_to_name_no_fallbacks() {
    let mut world = World::new(OnUsageLimit::HandOff);
    world.reaches(LimitKind::UsageLimit, Some(2));
    let decision = world.reads_persona(&[], &[], Some("persona.toml, line 2: unknown field"));
    let text = &told(&decision)[0].0;
    assert!(text.contains("persona.toml, line 2: unknown field") && !text.contains("no fallbacks"), "{text}");
    assert!(world.core.state.handoffs.is_empty());
}

#[test]
fn a_turn_that_a_limit_has_ended_is_told_as_a_limit_and_another_one_as_a_failed_turn() {
    let mut world = World::new(OnUsageLimit::Tell);
    let decision = world.hook(HookKind::StopFailure);
    assert!(told(&decision).is_empty() && decision.errors.is_empty(), "it is not known yet why the turn has failed");
    let key = world.effect(|effect| matches!(effect, Effect::ReadLimit { .. })).expect("it is looked for");
    let decision = world.core.decide(Event::Settled { key, outcome: Outcome::Limit(None) });
    assert_eq!(decision.errors.len(), 1, "{decision:?}");
    assert_eq!((decision.errors[0].code.as_str(), told(&decision).len()), ("turn_failed", 1));
    world.hook(HookKind::Stop);
    let decision = world.reaches(LimitKind::LoggedOut, None);
    assert!(decision.errors.is_empty());
    let codes: Vec<Value> = told(&decision).into_iter().map(|(_, json)| json["code"].clone()).collect();
    assert_eq!(codes, ["agent_limited"]);
}

#[test]
fn what_only_the_screen_shows_is_told_and_has_no_other_consequence_until_the_transcript_shows_it() {
    let mut world = World::new(OnUsageLimit::HandOff);
    world.on_screen = true;
    assert_eq!(
        told(&world.reaches(LimitKind::UsageLimit, Some(2))).len(),
        1,
        "an agent's work may print the same words"
    );
    assert!(world.effect(|effect| matches!(effect, Effect::CheckAutoHandoff { .. })).is_none());
    world.on_screen = false;
    assert!(told(&world.reaches(LimitKind::UsageLimit, Some(2))).is_empty());
    world.reads_fallbacks(&["other"]);
    assert_eq!(world.core.state.handoffs.len(), 1);
}

#[test]
fn a_limit_that_comes_back_after_its_end_is_another_one() {
    let mut world = World::new(OnUsageLimit::Wait);
    world.reaches(LimitKind::UsageLimit, Some(1));
    world.core.now.wall_ms += HOUR_MS;
    world.core.pass(3_600_000 + 3 * 60_000);
    assert_eq!(world.resumes(), 1);
    world.hook(HookKind::PromptSubmit);
    let decision = world.reaches(LimitKind::UsageLimit, Some(1));
    assert_eq!(told(&decision).len(), 1, "{decision:?}");
    assert!(world.row().limits.resume_at.is_some());
}

#[test]
fn words_that_are_still_on_the_screen_are_those_of_the_same_limit() {
    let mut world = World::new(OnUsageLimit::Tell);
    world.reaches(LimitKind::UsageLimit, Some(1));
    world.core.now.wall_ms += 2 * HOUR_MS;
    world.hook(HookKind::Blocked);
    let key = world.effect(|effect| matches!(effect, Effect::ReadLimit { .. })).expect("it is looked for");
    let until_ms = Some(world.core.now.wall_ms + 22 * HOUR_MS);
    let found = LimitFound { kind: LimitKind::UsageLimit, until_ms, said: "used up".to_owned(), on_screen: true };
    let decision = world.core.decide(Event::Settled { key, outcome: Outcome::Limit(Some(found)) });
    assert!(told(&decision).iter().all(|(_, json)| json["code"] != "agent_limited"), "{decision:?}");
}

#[test]
fn at_a_dialog_nothing_is_typed_after_the_end_and_the_operator_is_told() {
    let mut world = World::new(OnUsageLimit::Wait);
    world.reaches(LimitKind::UsageLimit, Some(1));
    world.hook(HookKind::Blocked);
    let decision = world.core.pass(2 * 3_600_000);
    assert_eq!(world.resumes(), 0);
    assert!(decision.errors.iter().any(|error| error.code == "not_resumed"), "{decision:?}");
}

#[test]
fn another_session_is_not_told_to_continue() {
    let mut world = World::new(OnUsageLimit::Wait);
    world.reaches(LimitKind::UsageLimit, Some(1));
    let reason = Some(SessionReason::Replaced);
    let event = HookEvent { agent_id: Some(world.agent), reason, ..HookEvent::new(HookKind::SessionStart) };
    world.core.decide(Event::Hook(Box::new(event)));
    world.core.pass(2 * 3_600_000);
    assert_eq!(world.resumes(), 0);
}

#[test]
fn a_fallback_without_a_model_is_not_started_with_the_model_that_is_used_up() {
    let mut world = World::new(OnUsageLimit::HandOff);
    let row = world.core.state.agents.get_mut(&world.agent).expect("it is there");
    row.model = Some("big".to_owned());
    world.reaches(LimitKind::UsageLimit, Some(2));
    world.reads_fallbacks(&["demo"]);
    let handoff = world.core.state.handoffs.values().next().expect("a handoff");
    assert_eq!(handoff.choice, ProfileChoice { profile: "demo".to_owned(), model: None });
}

/// A world in which the agent's CLI is used up as soon as somebody looks.
fn used_up_world(policy: OnUsageLimit) -> FlowWorld {
    let mut world = FlowWorld::new();
    world.core.state.settings.on_usage_limit = policy;
    let until_ms = Some(world.core.now.wall_ms + 2 * HOUR_MS);
    let found = LimitFound { kind: LimitKind::UsageLimit, until_ms, said: "used up".to_owned(), on_screen: false };
    world.at("read_limit", Instead::Outcome(Outcome::Limit(Some(found))))
}

/// The failed handoff, and the one that has followed from it.
fn both(world: &FlowWorld) -> (Option<Handoff>, Option<Handoff>) {
    let of = |reason: &str| world.core.state.handoffs.values().find(|handoff| handoff.reason == reason).cloned();
    (of("r"), of("usage_limit"))
}

#[test]
fn a_handoff_that_a_limit_has_failed_before_anything_was_written_is_followed_by_one_to_a_fallback() {
    let world = used_up_world(OnUsageLimit::HandOff).turn("instruction", Turn::Fails).hand_off(&json!({}));
    let (failed, next) = both(&world);
    let failed_at = failed.and_then(|handoff| handoff.error).map(|error| (error.step, error.code));
    assert_eq!(failed_at, Some((Step::Writing, "agent_failed".to_owned())));
    let next = next.expect("the work goes to the fallback");
    assert_eq!((next.step, next.choice.model.as_deref()), (Step::Done, Some("small")), "{next:?}");
    assert_eq!(world.started.len(), 1);
}

#[test]
fn an_agent_that_waits_for_the_end_of_its_limit_in_the_turn_of_its_handoff_is_handed_off_when_that_has_failed() {
    let mut world = used_up_world(OnUsageLimit::HandOff).turn("instruction", Turn::GoesOn).hand_off(&json!({}));
    world.hear_of(outgoing(), HookEvent::new(HookKind::Notification));
    world.pass(1);
    assert!(both(&world).1.is_none(), "the first handoff still runs");
    world.wait();
    let (failed, next) = both(&world);
    assert_eq!(failed.and_then(|handoff| handoff.error).map(|error| error.code), Some("stop_never_came".to_owned()));
    let next = next.expect("the work goes to the fallback");
    assert!(next.record.is_some(), "{next:?}");
}

#[test]
fn a_handoff_that_a_limit_has_failed_is_left_to_a_person_if_something_was_written_or_the_agent_is_to_wait() {
    let mut world = used_up_world(OnUsageLimit::HandOff).turn("instruction", Turn::GoesOn).hand_off(&json!({}));
    world.see_document(900);
    world.hear_of(outgoing(), HookEvent::new(HookKind::StopFailure));
    world.pass(1);
    let (failed, next) = both(&world);
    assert_eq!((failed.map(|handoff| handoff.step), next), (Some(Step::Failed), None));
    let world = used_up_world(OnUsageLimit::Wait).turn("instruction", Turn::Fails).hand_off(&json!({}));
    assert_eq!(both(&world).1, None);
    assert!(world.agent(&outgoing()).limits.resume_at.is_none(), "the failed instruction would be continued");
}
