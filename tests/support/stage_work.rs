//! Work items on a stage: makes personas with roles, and makes, claims and checks items.

use super::stage::Stage;
use super::stage_files::{names, read_json};
use serde_json::{Value, json};
use std::fs;

impl Stage {
    /// Makes a persona with a role.
    pub(crate) fn player(&self, slug: &str, role: &str) {
        self.persona(slug);
        let path = self.home().join("data/personas").join(slug).join("persona.toml");
        let toml = fs::read_to_string(&path).expect("a persona");
        fs::write(path, format!("{toml}role = \"{role}\"\n")).expect("a role");
    }

    /// Makes demo agents whose personas have roles, and waits until they are primed and idle. Returns their ids.
    pub(crate) fn team(&self, players: &[(&str, &str)]) -> Vec<String> {
        let asked: Vec<String> = players
            .iter()
            .map(|(slug, role)| {
                self.player(slug, role);
                self.send(&json!({"kind": "agent_create", "persona_slug": slug}))
            })
            .collect();
        let ids: Vec<String> = asked
            .iter()
            .map(|request| self.result(request)["result"]["agent_id"].as_str().expect("an agent").to_owned())
            .collect();
        ids.iter().for_each(|id| self.until_idle(id));
        ids
    }

    /// Registers an agent without a pane, by its event alone. Nothing can be typed to it; the test makes requests for
    /// it.
    pub(crate) fn clerk(&self, number: u8, slug: &str, role: &str) -> String {
        self.player(slug, role);
        let id = format!("0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9b0{number:02x}");
        let event = json!({"v": 1, "event": "session_start", "agent_id": id, "persona_slug": slug, "session_id": id});
        self.drop_file("events", &format!("clerk-{number}.json"), event.to_string().as_bytes());
        self.until("the clerk is seen", || self.agent_view(&id)["state"] == "idle");
        id
    }

    /// An item's view; null while there is none.
    pub(crate) fn item(&self, id: &str) -> Value {
        read_json(&self.home().join(format!("view/work/{id}.json"))).unwrap_or(Value::Null)
    }

    /// Makes an item, and returns its id.
    pub(crate) fn item_of(&self, kind: &str, title: &str) -> String {
        let made = self.granted(&json!({"kind": "work_create", "type": kind, "title": title}));
        assert_eq!(made["status"], "ready");
        made["item_id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn claim(&self, id: &str, agent: &str) {
        let claimed = self.granted(&json!({"kind": "work_claim", "item_id": id, "agent_id": agent}));
        assert_eq!(claimed, json!({"item_id": id, "status": "claimed"}));
    }

    /// Completes an item, and returns the ids of its children.
    pub(crate) fn complete(&self, id: &str, agent: &str, output: &Value, children: &Value) -> Vec<String> {
        let done = self.granted(&json!({"kind": "work_complete", "item_id": id, "agent_id": agent, "output": output,
            "children": children}));
        let made = done["children"].as_array().expect("a list").iter();
        made.map(|child| child["item_id"].as_str().expect("an id").to_owned()).collect()
    }

    /// Waits until an item has a status, and returns its view.
    pub(crate) fn until_status(&self, id: &str, status: &str) -> Value {
        self.wait_for(&format!("item {id} is {status}"), || Some(self.item(id)).filter(|item| item["status"] == status))
    }

    /// The actions in an item's history, in order.
    pub(crate) fn actions(&self, id: &str) -> Vec<String> {
        let view = self.item(id);
        let lines = view["history"].as_array().unwrap_or_else(|| panic!("no history: {view}"));
        lines.iter().map(|line| line["action"].as_str().expect("a word").to_owned()).collect()
    }

    /// The ids of the items that have a mark in `view/work/open`.
    pub(crate) fn open_items(&self) -> Vec<String> {
        names(&self.home().join("view/work/open"))
    }

    /// Checks what must be true of all items: parents and children name each other, exactly the claimed items have an
    /// owner, histories have no gaps, and exactly the open items have a mark.
    pub(crate) fn check_work(&self) {
        let items = self.views("work");
        let find = |id: &Value| items.iter().find(|item| item["item_id"] == *id);
        for item in &items {
            if !item["parent_id"].is_null() {
                let parent = find(&item["parent_id"]).unwrap_or_else(|| panic!("no parent: {item:#}"));
                let listed = parent["children"].as_array().expect("a list").contains(&item["item_id"]);
                assert_eq!(listed, item["status"] != "withdrawn", "{item:#}{parent:#}");
                assert_eq!(item["project_id"], parent["project_id"], "{item:#}");
            }
            assert_eq!(item["status"] == "claimed", item["claimed_by"].is_string(), "{item:#}");
            let mut before = Value::Null;
            for line in item["history"].as_array().expect("a history") {
                assert_eq!(line["from"], before, "{item:#}");
                before = line["to"].clone();
            }
            assert_eq!(before, item["status"], "{item:#}");
        }
        let is_open = |item: &&Value| matches!(item["status"].as_str(), Some("ready" | "claimed" | "escalated"));
        let mut open: Vec<String> =
            items.iter().filter(is_open).map(|item| item["item_id"].as_str().expect("an id").to_owned()).collect();
        open.sort();
        // An item's mark is removed after its view was written: until then there is one mark too many.
        self.until(&format!("marked as open are {open:?}"), || self.open_items() == open);
    }
}
