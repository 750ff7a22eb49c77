//! Which agents are notified of items while a limit stops an agent's CLI.

use super::notices::{create, fail, later, looked, receipt, stop, typed};
use super::*;
use crate::contract::LimitKind;
use crate::core::effect::{EffectKey, LimitFound, TypeText};
use crate::core::settings::OnUsageLimit;

/// Lets minutes pass until an agent is told of an item, at most 90. Returns how many passed, and the texts that are
/// typed then.
fn told_after(world: &mut World) -> (u32, Vec<(EffectKey, AgentId, TypeText)>) {
    let mut minutes = 0;
    loop {
        minutes += 1;
        let told = later(world, 60_000);
        if !told.is_empty() || minutes == 90 {
            return (minutes, told);
        }
    }
}

#[test]
fn an_agent_at_its_limit_is_notified_of_nothing_until_the_limit_has_ended() {
    for ends_in_ms in [None, Some(3_600_000)] {
        let (mut world, _) = World::new();
        let (dev, other) = (world.agent("dev", Some(1)), world.agent("dev", Some(2)));
        let notice = create(&mut world, "story", "one", "normal").remove(0);
        receipt(&mut world, &notice);
        let failed = fail(&mut world, dev, HookKind::StopFailure);
        let told = typed(&failed);
        assert_eq!((told.len(), told[0].1), (1, other), "the next agent is told at once");
        let until_ms = ends_in_ms.map(|ms| world.now.wall_ms + ms);
        let found = LimitFound { kind: LimitKind::UsageLimit, until_ms, said: "limit".to_owned(), on_screen: false };
        assert!(looked(&mut world, &failed, Some(found)).is_empty());
        receipt(&mut world, &told[0]);
        world.claim(world.all()[0].item_id, other).expect("claimed");
        assert!(stop(&mut world, other).is_empty());
        for title in ["two", "three"] {
            assert!(create(&mut world, "story", title, "normal").is_empty());
        }
        let (minutes, told) = told_after(&mut world);
        match ends_in_ms {
            Some(_) => assert!((60..80).contains(&minutes) && told[0].1 == dev, "{minutes}"),
            None => {
                assert!(told.is_empty());
                // A person has told the agent to continue.
                world.hook(dev, HookKind::PromptSubmit, None, |event| event.turn_id = Some("u".to_owned()));
                let stopped = world.hook(dev, HookKind::Stop, None, |event| event.turn_id = Some("u".to_owned()));
                assert_eq!(typed(&stopped).len(), 1);
            }
        }
    }
}

/// The clocks of the service and of this machine differ.
#[test]
fn an_agent_is_notified_three_minutes_after_the_end_of_the_limit_however_far_off_it_was() {
    for ends_in in 1..25 {
        let (mut world, _) = World::new();
        let dev = world.agent("dev", Some(1));
        let notice = create(&mut world, "story", "one", "normal").remove(0);
        receipt(&mut world, &notice);
        let failed = fail(&mut world, dev, HookKind::StopFailure);
        let until_ms = Some(world.now.wall_ms + i64::from(ends_in) * 60_000);
        let found = LimitFound { kind: LimitKind::UsageLimit, until_ms, said: "limit".to_owned(), on_screen: false };
        assert!(looked(&mut world, &failed, Some(found)).is_empty());
        let (minutes, told) = told_after(&mut world);
        assert_eq!((told[0].1, minutes.abs_diff(ends_in + 3) <= 1), (dev, true), "{ends_in}: {minutes}");
    }
}

/// An overload of the service stops all agents at once, and no turn of an idle agent shows that it is over.
#[test]
fn an_agent_whose_service_was_overloaded_is_notified_again() {
    let (mut world, _) = World::new();
    let dev = world.agent("dev", Some(1));
    let notice = create(&mut world, "story", "one", "normal").remove(0);
    receipt(&mut world, &notice);
    let failed = fail(&mut world, dev, HookKind::StopFailure);
    let found = LimitFound { kind: LimitKind::Overloaded, until_ms: None, said: "529".to_owned(), on_screen: false };
    assert!(looked(&mut world, &failed, Some(found)).is_empty());
    let (minutes, told) = told_after(&mut world);
    assert!((8..15).contains(&minutes), "{minutes}");
    assert_eq!(told[0].1, dev);
}

/// The operator was told that the agent continues its work after the limit. A notice that came first would take that
/// turn, and the agent would count as continued.
#[test]
fn an_agent_that_is_to_continue_after_its_limit_is_told_that_before_it_is_notified() {
    for ends_in_ms in (30_000..700_000).step_by(30_000) {
        let (mut world, _) = World::new();
        world.state.settings.on_usage_limit = OnUsageLimit::Wait;
        world.state.settings.resume_text = "Continue with your work.".to_owned();
        let dev = world.agent("dev", Some(1));
        let notice = create(&mut world, "story", "one", "normal").remove(0);
        receipt(&mut world, &notice);
        let failed = fail(&mut world, dev, HookKind::StopFailure);
        let until_ms = Some(world.now.wall_ms + ends_in_ms);
        let found = LimitFound { kind: LimitKind::UsageLimit, until_ms, said: "limit".to_owned(), on_screen: false };
        assert!(looked(&mut world, &failed, Some(found)).is_empty());
        let (minutes, told) = told_after(&mut world);
        assert_eq!(told.len(), 1, "limit of {ends_in_ms} ms, after {minutes} minutes");
        assert!(told[0].2.text.contains("Continue with your work."), "limit of {ends_in_ms} ms: {}", told[0].2.text);
    }
}
