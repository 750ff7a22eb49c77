//! `tasuki lineage` where views of ended agents were removed for their age.

use crate::support::fake_sidecar::FakeHome;
use crate::support::said::{err, out};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const NEXT: &str = "22222222-2222-4222-8222-222222222222";
const MIA: &str = "33333333-3333-4333-8333-333333333333";
const LAST: &str = "44444444-4444-4444-8444-444444444444";

/// Writes views again that are asked for, as the sidecar does.
fn keeper(home: &Arc<FakeHome>, stop: &Arc<AtomicBool>, old: &[(&str, Value)]) -> std::thread::JoinHandle<()> {
    let (home, stop) = (Arc::clone(home), Arc::clone(stop));
    let old: Vec<(String, Value)> = old.iter().map(|(id, view)| ((*id).to_owned(), view.clone())).collect();
    std::thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            let asked = |file: &PathBuf| file.to_string_lossy().contains(".wanted-");
            for marker in home.files("view").into_iter().filter(asked) {
                let wanted = |(id, _): &&(String, Value)| marker.to_string_lossy().ends_with(id.as_str());
                for (id, view) in old.iter().filter(wanted) {
                    home.write(&format!("view/agents/{id}.json"), view);
                }
                let _ = std::fs::remove_file(marker);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    })
}

#[test]
fn a_lineage_is_whole_though_the_views_of_its_oldest_agents_were_removed() {
    let agent = |id: &str, previous: Option<&str>, next: Option<&str>| {
        json!({"agent_id": id, "persona_slug": "kai", "profile": "demo", "state": "ended", "previous_agent_id": previous,
            "successor_id": next, "registered_at": format!("2026-11-21T20:00:{}.000Z", &id[..2])})
    };
    let (first, second) = (agent(KAI, None, Some(NEXT)), agent(NEXT, Some(KAI), Some(MIA)));
    let third = agent(MIA, Some(NEXT), Some(LAST));
    let ids = |output: &Output| {
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let agents = json["lineage"].as_array().expect("a list").iter();
        agents.map(|agent| agent["agent_id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    // From the last one upwards, and from the first one downwards.
    for (named, there, old) in [
        (LAST, (MIA, third.clone()), [(KAI, first.clone()), (NEXT, second.clone())]),
        (KAI, (KAI, first), [(NEXT, second), (MIA, third)]),
    ] {
        let home = Arc::new(FakeHome::new());
        home.agent(LAST, Some("kai"), Some(MIA), "idle");
        home.write(&format!("view/agents/{}.json", there.0), &there.1);
        let without = home.run(&["lineage", named]);
        // Both times the second one is the first that is missing.
        let said = err(&without);
        assert!(out(&without).contains(&NEXT[..8]) && said.contains(NEXT), "{named}: {}{said}", out(&without));
        assert!(said.contains("no sidecar runs that could write it again"), "{said}");
        home.beat(0);
        let stop = Arc::new(AtomicBool::new(false));
        let keeper = keeper(&home, &stop, &old);
        let output = home.run(&["lineage", named, "--json"]);
        stop.store(true, Ordering::SeqCst);
        keeper.join().expect("no panic");
        assert_eq!(ids(&output), [KAI, NEXT, MIA, LAST], "{named}: {}", err(&output));
    }
}
