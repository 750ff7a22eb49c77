//! kill -9 of the sidecar.

use crate::cli::Cli;
use crate::scene::Scene;

/// In each step of one handoff, the sidecar is killed and started again; everything is typed once, and it ends well.
pub(crate) fn in_each_step(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    let handoff = scene.stage.hand_off(&agent);
    for step in ["instructing", "writing", "ending", "starting", "priming", "briefing"] {
        let begun = scene.stage.wait_for(&format!("{step} or later"), || {
            let at = scene.stage.handoff_view(&handoff)["step"].as_str().unwrap_or_default().to_owned();
            assert!(at != "failed", "{}", scene.story());
            let steps =
                ["waiting", "instructing", "writing", "recording", "ending", "starting", "priming", "briefing", "done"];
            let place = |name: &str| steps.iter().position(|step| *step == name).unwrap_or(0);
            (place(&at) >= place(step)).then_some(at)
        });
        if begun != "done" {
            scene.stage.crash_and_restart();
        }
    }
    let view = scene.stage.until_step(&handoff, "done");
    scene.nothing_came_twice();
    assert!(view["error"].is_null(), "{view:#}");
    scene.until("the successor is briefed", || scene.heard("You take over from agent"));
    let successor = scene.conversation("You take over from agent");
    assert_eq!(successor.len(), 2, "{successor:#?}");
}
