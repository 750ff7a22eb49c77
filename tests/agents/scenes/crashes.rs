//! kill -9 of the sidecar.

use crate::cli::Cli;
use crate::scene::Scene;
use crate::steps::STEPS;
use std::time::Duration;

/// The sidecar is killed over and over, also while pieces are on their way: what can't be known is asked, nothing is
/// typed twice, and with an answer it ends well.
pub(crate) fn all_the_time(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    let handoff = scene.stage.hand_off(&agent);
    let step = || scene.stage.handoff_view(&handoff)["step"].as_str().unwrap_or_default().to_owned();
    for pause in [150, 400, 250, 700, 320, 900, 480, 1200, 560, 820, 380, 1500, 640, 990] {
        std::thread::sleep(Duration::from_millis(pause));
        if ["done", "failed"].contains(&step().as_str()) {
            break;
        }
        scene.stage.crash_and_restart();
    }
    let view = scene.stage.until_ended(&handoff);
    scene.nothing_came_twice();
    let doubt = &view["error"]["code"];
    assert!(view["step"] == "done" || *doubt == "unconfirmed", "{view:#}\n{}", scene.story());
    println!("{} {doubt}", view["step"]);
}

/// In each step of one handoff, the sidecar is killed and started again; everything is typed once, and it ends well.
pub(crate) fn in_each_step(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    let handoff = scene.stage.hand_off(&agent);
    kill_in_each_step(&scene, &handoff);
    let view = scene.stage.until_step(&handoff, "done");
    scene.nothing_came_twice();
    assert!(view["error"].is_null(), "{view:#}");
    scene.until("the successor is briefed", || scene.heard("You take over from agent"));
    let successor = scene.conversation("You take over from agent");
    assert_eq!(successor.len(), 2, "{successor:#?}");
}

/// Kills the sidecar and starts it again as often as the handoff is in another step, until it is done.
pub(crate) fn kill_in_each_step(scene: &Scene, handoff: &str) {
    for step in ["instructing", "writing", "ending", "starting", "priming", "briefing", "reading"] {
        let begun = scene.stage.wait_for(&format!("{step} or later"), || {
            let at = scene.stage.handoff_view(handoff)["step"].as_str().unwrap_or_default().to_owned();
            assert!(at != "failed", "{}", scene.story());
            let place = |name: &str| STEPS.iter().position(|step| *step == name).unwrap_or(0);
            (place(&at) >= place(step)).then_some(at)
        });
        if begun != "done" {
            scene.stage.crash_and_restart();
        }
    }
}
