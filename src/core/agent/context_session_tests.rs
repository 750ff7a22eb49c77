//! What the context usage is worth when the session is replaced or compacted, and what waits until it is known.

use super::*;
use crate::core::rows::agent::{Asker, Queued};

fn measured_as(used: u64, window: Option<u64>) -> Outcome {
    Outcome::ContextUsage(Some(Measured { usage: ContextUsage { used, window }, guessed: false }))
}

fn texts_typed(decision: &Decision) -> usize {
    decision.effects.iter().filter(|(_, pending)| matches!(pending.effect, Effect::Type(_))).count()
}

impl World {
    fn reading(&self) -> EffectKey {
        self.agent().context_watch.reading.expect("the transcript is read")
    }

    fn settle_reading(&mut self, used: u64) -> Decision {
        self.decide(Event::Settled { key: self.reading(), outcome: measured_as(used, Some(100_000)) })
    }

    fn percent(&self) -> Option<u64> {
        self.agent().context.and_then(|context| context.percent())
    }
}

/// The transcript of pi has only the number of tokens. The size of the window comes with the end of each turn.
#[test]
fn a_window_that_is_reported_with_the_end_of_a_turn_counts() {
    let reported = ContextUsage { used: 84_000, window: Some(100_000) };
    let mut world = World::new(Some(70), Some(80));
    world.hook(HookKind::Stop, |event| event.context = Some(reported));
    let decision = world.decide(Event::Settled { key: world.reading(), outcome: measured_as(85_000, None) });
    assert_eq!((world.percent(), notices(&decision)), (Some(85), 1));
    world.settle_check(Some(0));
    assert_eq!(world.state.handoffs.len(), 1);

    let mut world = World::new(Some(70), Some(80));
    world.state.settings.profiles.get_mut("demo").expect("a profile").reports_context = false;
    let decision = world.hook(HookKind::Stop, |event| event.context = Some(reported));
    assert_eq!((world.percent(), notices(&decision)), (Some(84), 1), "without a transcript");
    world.settle_check(Some(0));
    assert_eq!(world.state.handoffs.len(), 1);
}

/// A person types `/clear` directly after a turn: what was being read is the usage of the session that has ended.
#[test]
fn what_is_read_of_one_session_is_not_taken_for_the_next_one() {
    for (is_read, has_begun) in [(false, false), (false, true), (true, false), (true, true)] {
        let case = format!("read: {is_read}, begun: {has_begun}");
        let mut world = World::new(None, Some(80));
        world.hook(HookKind::Stop, |_| {});
        let mut late = (world.reading(), measured_as(91_000, Some(100_000)));
        if is_read {
            world.settle_reading(91_000);
            let key = world.agent().context_watch.checking.expect("the preconditions are checked");
            let persona = PersonaFacts { exists: true, has_skill: true, ..PersonaFacts::default() };
            late = (key, Outcome::AutoHandoffCheck(Box::new(AutoHandoffCheck::new(Some(0), persona))));
        }
        world.hook(HookKind::SessionEnd, |event| event.reason = Some(SessionReason::Replaced));
        if has_begun {
            world.hook(HookKind::SessionStart, |event| {
                event.reason = Some(SessionReason::Replaced);
                event.session_id = Some("s2".to_owned());
            });
        }
        let (key, outcome) = late;
        let decision = world.decide(Event::Settled { key, outcome });
        assert_eq!((world.state.handoffs.len(), notices(&decision)), (0, 0), "{case}");
        assert!(!has_begun || world.agent().context.is_none(), "{case}");
        assert!(world.agent().context_watch.checking.is_none(), "{case}");
    }
}

#[test]
fn after_a_compaction_the_usage_is_unknown_until_the_next_turn_has_ended() {
    let mut world = World::new(Some(70), None);
    assert_eq!(notices(&world.stop(92_000)), 1);
    world.hook(HookKind::Stop, |_| {});
    let before = world.reading();
    world.hook(HookKind::SessionStart, |event| event.reason = Some(SessionReason::Same));
    world.decide(Event::Settled { key: before, outcome: measured_as(92_000, Some(100_000)) });
    assert_eq!((world.agent().context, is_suggested(world.agent())), (None, false));
    assert_eq!(notices(&world.stop(93_000)), 0, "it was told in this session");
    assert!(world.percent() == Some(93) && is_suggested(world.agent()));
}

/// Each text begins a turn. If one were typed as soon as the turn before has ended, no handoff would begin as long as
/// texts wait, however full the context is.
#[test]
fn a_waiting_text_is_typed_as_soon_as_no_automatic_handoff_can_follow() {
    let world = || {
        let mut world = World::new(None, Some(80));
        let deadline = Deadline::after(&world.now(), 600_000);
        let asker = Asker::Request("r1".parse().expect("an id"));
        world.change(|agent| {
            agent.state = AgentState::Busy;
            agent.queue.push(Queued { asker, text: "Run the tests.".to_owned(), deadline });
        });
        world
    };
    let at_once: [fn(&mut World); 3] = [
        |world| world.state.settings.context.auto_at = None,
        |world| world.change(|agent| agent.persona_slug = None),
        |world| world.change(|agent| agent.context_watch.begun_in = Some("s1".to_owned())),
    ];
    for change in at_once {
        let mut world = world();
        change(&mut world);
        assert_eq!(texts_typed(&world.hook(HookKind::Stop, |_| {})), 1, "no handoff begins by itself");
    }
    for used in [Some(79_999), None] {
        let mut world = world();
        assert_eq!(texts_typed(&world.hook(HookKind::Stop, |_| {})), 0);
        let failed = Outcome::Failed { why: "a disk hangs".to_owned() };
        let outcome = used.map_or(failed, |used| measured_as(used, Some(100_000)));
        let decision = world.decide(Event::Settled { key: world.reading(), outcome });
        assert_eq!(texts_typed(&decision), 1, "{used:?}");
    }
    for (viewers, texts) in [(Some(1), 1), (None, 1), (Some(0), 0)] {
        let mut world = world();
        world.hook(HookKind::Stop, |_| {});
        assert_eq!(texts_typed(&world.settle_reading(85_000)), 0);
        assert_eq!(texts_typed(&world.settle_check(viewers)), texts, "{viewers:?}");
        assert_eq!((world.state.handoffs.len(), world.agent().queue.len()), (1 - texts, 1 - texts), "{viewers:?}");
    }
}
