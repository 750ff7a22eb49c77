//! Checks of what must be true after every handoff, whatever happened in it; and a stage that collects the notices to
//! the operator.

use super::stage::Stage;
use super::stage_files::{delivery_ids, json_files, names};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tasuki::core::text::sentence;

impl Stage {
    /// A stage whose sidecar writes each notice to the operator as a line of JSON into the returned file.
    pub(crate) fn with_notices() -> (Self, PathBuf) {
        let stage = Stage::without_sidecar("");
        let told = stage.work_dir().join("told");
        let script = "cat >> \"$0\"; echo >> \"$0\"";
        let config = format!("[notify]\ncommand = [\"/bin/sh\", \"-c\", '{script}', \"{}\"]\n", told.display());
        fs::write(stage.home().join("config.toml"), config).expect("a configuration");
        stage.start_sidecar();
        (stage, told)
    }

    /// Waits until the handoff's document is recorded; returns the handoff's view.
    pub(crate) fn until_recorded(&self, handoff: &str) -> Value {
        self.wait_for("the record is there", || {
            Some(self.handoff_view(handoff)).filter(|view| view["recorded_at"].is_string())
        })
    }

    /// All error files.
    pub(crate) fn errors(&self) -> Vec<Value> {
        json_files(&self.spool("errors"))
    }

    /// The names in a folder of the spool (`room`), sorted.
    pub(crate) fn names(&self, room: &str) -> Vec<String> {
        names(&self.spool(room))
    }

    /// Checks that no delivery was typed twice into any agent, and that the journal has no gap.
    pub(crate) fn check_once(&self) {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for line in self.recorded() {
            for id in delivery_ids(line["text"].as_str().unwrap_or_default()) {
                *seen.entry(id).or_default() += 1;
            }
        }
        let twice: Vec<_> = seen.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "typed twice: {twice:?}\n{}", self.story());
        let journal = self.journal();
        let seqs: Vec<u64> = journal.iter().map(|line| line["seq"].as_u64().expect("a seq")).collect();
        let expected: Vec<u64> = (1..=seqs.len() as u64).collect();
        assert_eq!(seqs, expected, "the journal has gaps\n{}", self.story());
    }

    /// The error files of one handoff.
    pub(crate) fn errors_of(&self, handoff: &str) -> Vec<Value> {
        self.errors().into_iter().filter(|error| error["handoff_id"] == handoff).collect()
    }

    /// The journal's lines of one type and one handoff.
    pub(crate) fn lines_of(&self, handoff: &str, kind: &str) -> Vec<Value> {
        let of = |line: &Value| line["handoff_id"] == handoff && line["type"] == kind;
        self.journal().into_iter().filter(of).collect()
    }

    /// The steps that a handoff has entered, in order, by the journal.
    pub(crate) fn steps_of(&self, handoff: &str) -> Vec<String> {
        let lines = self.lines_of(handoff, "handoff.step");
        let entered = lines.iter().filter(|line| line["document_bytes"].is_null());
        entered.map(|line| line["step"].as_str().expect("a step").to_owned()).collect()
    }

    /// How many of an agent's prompts were handoff instructions, primings and briefings.
    pub(crate) fn typed(&self, agent: &str) -> (usize, usize, usize) {
        let prompts = self.prompts(agent);
        let count = |start: &str| prompts.iter().filter(|prompt| prompt.contains(start)).count();
        (
            count("Please write a handoff document for your successor."),
            count("You are the persona "),
            count("Here is your handoff from agent "),
        )
    }

    /// Checks what a failed handoff leaves: one error file and one journal line, which say the same; both agents belong
    /// to no handoff any more; and a recorded document is still there.
    pub(crate) fn check_failure(&self, view: &Value) {
        let id = view["handoff_id"].as_str().expect("an id");
        let error = &view["error"];
        let files = self.errors_of(id);
        assert_eq!(files.len(), 1, "{files:#?}\n{}", self.story());
        let lines = self.wait_for("the journal tells of the failure", || {
            Some(self.lines_of(id, "handoff.failed")).filter(|lines| !lines.is_empty())
        });
        assert_eq!(lines.len(), 1, "{lines:#?}\n{}", self.story());
        for name in ["error_id", "step", "code", "message"] {
            assert_eq!((&files[0][name], &lines[0][name]), (&error[name], &error[name]), "{name}");
        }
        assert_eq!((&files[0]["hint"], &files[0]["agent_id"]), (&error["hint"], &view["agent_id"]));
        assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty() && sentence(hint) == hint), "{error}");
        for name in ["agent_id", "successor_id"] {
            if let Some(agent) = view[name].as_str() {
                assert!(self.agent_view(agent)["handoff_id"].is_null(), "{name} is not let go: {}", self.story());
            }
        }
        if view["sha256"].is_string() {
            let path = view["file_path"].as_str().expect("a path");
            let size = fs::metadata(path).expect("the document is kept").len();
            assert_eq!(view["bytes"], size);
        }
        self.check_once();
    }

    /// The same, and checks that the outgoing agent was left running and has no successor.
    pub(crate) fn check_halted(&self, view: &Value) {
        self.check_failure(view);
        let agent = view["agent_id"].as_str().expect("an id");
        // The list of processes may miss a living one for a moment. A process that has ended never comes back.
        self.until("the agent is left running", || self.is_running(agent));
        assert!(view["successor_id"].is_null() && self.agent_view(agent)["ended_at"].is_null());
        assert!(self.errors().len() == 1 || self.views("handoffs").len() > 1, "{}", self.story());
    }

    /// Checks what must be true of a handoff during which the sidecar has crashed.
    pub(crate) fn check_crashed(&self, view: &Value) {
        let id = view["handoff_id"].as_str().expect("an id");
        let step = view["step"].as_str().expect("a step");
        let failed = self.errors_of(id);
        match step {
            "done" => assert!(failed.is_empty(), "{failed:?}\n{}", self.story()),
            "failed" => self.check_failure(view),
            other => panic!("it ended {other}: {view:#}\n{}", self.story()),
        }
        self.check_once();
        let agent = view["agent_id"].as_str().expect("an id");
        let (instructions, _, briefings) = self.typed(agent);
        assert!(instructions <= 1 && briefings <= 1, "{}", self.story());
        let successors: Vec<Value> =
            self.views("agents").into_iter().filter(|other| other["previous_agent_id"] == agent).collect();
        assert!(successors.len() <= 1, "{successors:#?}\n{}", self.story());
        if let Some(successor) = view["successor_id"].as_str() {
            let (_, primings, briefings) = self.typed(successor);
            assert!(primings <= 1 && briefings <= 1, "{}", self.story());
            assert!(self.processes(successor).len() <= 1, "{}", self.story());
            assert!(view["recorded_at"].is_string(), "no successor without a record");
        }
        if self.processes(agent).is_empty() && step == "done" {
            assert!(view["recorded_at"].is_string(), "nothing ends before the record: {view:#}");
        }
        if step == "done" {
            self.check_done(view);
        }
    }

    /// Checks what a handoff that is done leaves: one successor, each text delivered once, and the predecessor ended.
    pub(crate) fn check_done(&self, view: &Value) {
        let id = view["handoff_id"].as_str().expect("an id");
        let (agent, successor) = (view["agent_id"].as_str().expect("an id"), view["successor_id"].as_str());
        let successor = successor.unwrap_or_else(|| panic!("no successor: {view:#}"));
        assert_eq!(view["step"], "done", "{view:#}");
        assert!(view["error"].is_null(), "{view:#}");
        for name in ["instruction", "priming", "briefing"] {
            assert_eq!(view["verdicts"][name]["verdict"], "delivered", "{name}: {view:#}");
        }
        // The outgoing agent may have been a successor itself.
        let (instructions, primings, briefings) = self.typed(agent);
        assert!((instructions, primings) == (1, 1) && briefings <= 1, "{}", self.story());
        assert_eq!(self.typed(successor), (0, 1, 1), "{}", self.story());
        assert_eq!(self.processes(agent), [] as [i32; 0]);
        assert_eq!(self.processes(successor).len(), 1, "{}", self.story());
        let (old, new) = (self.agent_view(agent), self.agent_view(successor));
        assert_eq!((&old["state"], &old["successor_id"]), (&"ended".into(), &successor.into()), "{old:#}");
        assert!(old["ended_at"].is_string() && new["ended_at"].is_null());
        assert_eq!((&new["previous_agent_id"], &new["persona_slug"]), (&agent.into(), &old["persona_slug"]));
        assert!(old["handoff_id"].is_null() && new["handoff_id"].is_null(), "{old:#}{new:#}");
        assert_eq!(self.lines_of(id, "handoff.failed").len(), self.errors_of(id).len());
        self.check_once();
    }

    /// Whether the journal says that a handoff is in this step. Views are written before the journal, so a test that
    /// reads both must wait for the journal.
    pub(crate) fn is_journaled(&self, handoff: &str, step: &str) -> bool {
        let of = |line: &&Value| line["handoff_id"] == handoff;
        let last = self
            .journal()
            .iter()
            .filter(of)
            .rfind(|line| {
                line["type"] == "handoff.failed" || (line["type"] == "handoff.step" && line["document_bytes"].is_null())
            })
            .cloned();
        last.is_some_and(|line| match step {
            "failed" => line["type"] == "handoff.failed",
            step => line["type"] == "handoff.step" && line["step"] == step,
        })
    }

    /// Everything that helps to understand a failed test, as text.
    pub(crate) fn story(&self) -> String {
        let lines = |path: &Path, most: usize| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let all: Vec<&str> = text.lines().collect();
            all[all.len().saturating_sub(most)..].join("\n")
        };
        let panes = self.tmux(&["list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{window_name} #{session_name}"]);
        let screens: Vec<String> = panes
            .lines()
            .filter_map(|row| row.split(' ').next())
            .map(|pane| format!("[{pane}]\n{}", self.screen(pane).trim_end()))
            .collect();
        format!(
            "--- journal\n{}\n--- recorder\n{}\n--- sidecar\n{}\n--- panes\n{panes}\n{}\n--- errors {:?}\n--- rejected {:?}",
            lines(&self.spool("journal.jsonl"), 60),
            lines(&self.recorder(), 40),
            lines(&self.log_file(), 60),
            screens.join("\n"),
            self.errors(),
            self.names("rejected"),
        )
    }
}
