//! Which items an agent is notified of while its context fills up.

use super::notices::{create, receipt, stop, typed};
use super::*;
use crate::core::effect::{AutoHandoffCheck, Measured, Outcome};
use crate::core::hook::ContextUsage;
use crate::core::persona::PersonaFacts;
use crate::core::settings::ContextLimits;

/// The agent's transcript says this. If that is enough for an automatic handoff, so many clients show its window.
fn settle(world: &mut World, agent: AgentId, used: u64, viewers: u64) -> Decision {
    let key = world.state.agents[&agent].context_watch.reading.expect("the transcript is read");
    let usage = ContextUsage { used, window: Some(100) };
    let outcome = Outcome::ContextUsage(Some(Measured { usage, guessed: false }));
    let read = world.decide(Event::Settled { key, outcome }, None);
    let Some(key) = world.state.agents[&agent].context_watch.checking else { return read };
    assert!(typed(&read).is_empty(), "it is still to be checked whether a handoff begins");
    let persona = PersonaFacts { exists: true, has_skill: true, ..PersonaFacts::default() };
    let check = AutoHandoffCheck::new(Some(viewers), persona);
    world.decide(Event::Settled { key, outcome: Outcome::AutoHandoffCheck(Box::new(check)) }, None)
}

/// A night with a list of items: each notice begins a turn, and at the end of that turn the next item waits.
#[test]
fn an_automatic_handoff_begins_although_items_wait() {
    let (mut world, _) = World::new();
    world.state.settings.context = ContextLimits { suggest_at: None, auto_at: Some(80) };
    let dev = world.agent("dev", Some(1));
    world.state.agents.get_mut(&dev).expect("it is there").transcript_path = Some("/t".to_owned());
    let mut next = create(&mut world, "story", "0", "normal");
    for number in 1..6 {
        create(&mut world, "story", &number.to_string(), "normal");
    }
    for (used, viewers) in [(10, 0), (79, 0), (85, 1)] {
        assert_eq!(next.len(), 1, "{used}");
        receipt(&mut world, &next[0]);
        assert!(stop(&mut world, dev).is_empty(), "{used}");
        next = typed(&settle(&mut world, dev, used, viewers));
    }
    receipt(&mut world, &next[0]);
    assert!(stop(&mut world, dev).is_empty());
    assert!(typed(&settle(&mut world, dev, 86, 0)).is_empty());
    assert_eq!(world.state.handoffs.values().map(|handoff| handoff.agent_id).collect::<Vec<_>>(), [dev]);
    let told = world.all().iter().filter(|item| !item.notified.is_empty()).count();
    assert_eq!(told, 4, "two items are left for the successor");
}

/// The agent that is still being looked at does not hold up another one.
#[test]
fn an_item_goes_to_another_agent_while_one_may_be_handed_off() {
    let (mut world, _) = World::new();
    world.state.settings.context = ContextLimits { suggest_at: None, auto_at: Some(80) };
    let (dev, other) = (world.agent("dev", Some(1)), world.agent("dev", Some(2)));
    world.state.agents.get_mut(&dev).expect("it is there").transcript_path = Some("/t".to_owned());
    let notice = create(&mut world, "story", "one", "normal").remove(0);
    receipt(&mut world, &notice);
    let next = stop(&mut world, dev);
    assert_eq!((next.len(), next[0].1), (1, other), "the item that it has not claimed");
    assert!(create(&mut world, "story", "two", "normal").is_empty());
    let next = typed(&settle(&mut world, dev, 10, 0));
    assert_eq!((next.len(), next[0].1), (1, dev));
}
