//! What the context usage is worth when the session is replaced or compacted, and what waits until it is known.

use super::*;

fn measured_as(used: u64, window: Option<u64>) -> Outcome {
    Outcome::ContextUsage(Some(Measured { usage: ContextUsage { used, window }, guessed: false }))
}

impl World {
    fn reading(&self) -> EffectKey {
        self.agent().context_watch.reading.expect("the transcript is read")
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
