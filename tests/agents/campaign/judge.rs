//! Three things are compared for each text: the verdict, what the model was told, and the person's own words.

use super::faults::Fault;
use super::part::{Part, wait};
use super::texts::Text;
use crate::cli::Cli;
use crate::model::Heard;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;
use tasuki::core::id::DeliveryId;
use tasuki::core::text;

/// What is known of one delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) seed: u64,
    pub(super) number: u64,
    pub(super) cli: String,
    pub(super) kind: String,
    pub(super) fault: String,
    pub(super) by_person: bool,
    pub(super) token: String,
    /// `delivered`, `unconfirmed`, `refused`, or `none`: no answer.
    pub(super) verdict: String,
    pub(super) reason: String,
    /// By which its text is framed; empty where none was typed.
    pub(super) delivery_id: String,
    /// How often the model was told it.
    pub(super) count: u64,
    /// `exact`, `spacing`, `merged` or `altered`; empty where it did not come.
    pub(super) shape: String,
    pub(super) seconds: f64,
    pub(super) person: String,
    pub(super) note: String,
    pub(super) screen: String,
}

/// How often a text came to the model: in the longest form of each conversation, all of them together.
pub(super) fn count(heard: &[Heard], token: &str) -> u64 {
    let mut conversations: BTreeMap<&str, u64> = BTreeMap::new();
    for heard in heard {
        let here: usize = heard.prompts.iter().map(|prompt| prompt.matches(token).count()).sum();
        let first = heard.prompts.first().map_or("", String::as_str);
        let most = conversations.entry(first).or_default();
        *most = (*most).max(here as u64);
    }
    conversations.values().sum()
}

/// What became of a person's words; empty where each came once, or not at all because nobody has sent them.
pub(super) fn of_person(heard: &[Heard], words: &str, two: bool) -> String {
    let all = if two { vec![format!("{words}n0"), format!("{words}n1")] } else { vec![words.to_owned()] };
    let mut said = String::new();
    for words in all {
        match count(heard, &words) {
            1 => {}
            0 => said.push_str(&format!("the person's {words} came not; ")),
            more => said.push_str(&format!("the person's {words} came {more} times; ")),
        }
    }
    said
}

fn shape(prompt: &str, expected: &str) -> &'static str {
    let plain = |text: &str| text::normalise(&text::seen(text));
    if prompt == expected {
        "exact"
    } else if plain(prompt) == plain(expected) {
        "spacing"
    } else if plain(prompt).contains(&plain(expected)) {
        "merged"
    } else {
        "altered"
    }
}

impl Row {
    pub(super) fn new(
        seed: u64,
        number: u64,
        cli: Cli,
        text: &Text,
        fault: Fault,
        answer: Option<&Value>,
        seconds: f64,
    ) -> Row {
        let result = answer.map_or(&Value::Null, |answer| &answer["result"]);
        let error = answer.map_or(&Value::Null, |answer| &answer["error"]);
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (verdict, reason) = match answer {
            None => ("none".to_owned(), String::new()),
            Some(answer) if answer["ok"] == true => (word(&result["verdict"]), word(&result["reason"])),
            Some(_) => ("refused".to_owned(), format!("{} {}", word(&error["field"]), word(&error["message"]))),
        };
        Row {
            seed,
            number,
            cli: cli.name().to_owned(),
            kind: text.kind.to_owned(),
            fault: fault.as_str().to_owned(),
            by_person: fault.is_a_person(),
            token: text.token.clone(),
            verdict,
            reason,
            delivery_id: word(&result["delivery_id"]),
            count: 0,
            shape: String::new(),
            seconds,
            person: String::new(),
            note: String::new(),
            screen: String::new(),
        }
    }

    /// Looks what the model was told. What was delivered may take a while to it.
    pub(super) fn heard(&mut self, part: &Part, text: &Text, within: Duration) {
        let model = &part.scene.model;
        let look = || model.look(|heard| count(heard, &text.token));
        if self.verdict == "delivered" {
            wait(within, || (look() > 0).then_some(()));
        }
        self.look(part, text);
    }

    /// The same, without waiting.
    pub(super) fn look(&mut self, part: &Part, text: &Text) {
        let model = &part.scene.model;
        self.count = model.look(|heard| count(heard, &text.token));
        let Ok(bits) = u64::from_str_radix(&self.delivery_id, 16) else { return };
        let id = DeliveryId::from_bits(bits);
        let expected = text::frame("Text from the operator.", &text.body, &id);
        let found = model.look(|heard| {
            let mut prompts = heard.iter().rev().flat_map(|heard| heard.prompts.iter().rev());
            prompts.find(|prompt| prompt.contains(&text.token)).map(|prompt| shape(prompt, &expected).to_owned())
        });
        self.shape = found.unwrap_or_default();
    }

    fn is_merged(&self) -> bool {
        self.reason == "merged_draft"
    }

    /// What must never be, by its name.
    pub(super) fn fault_of_ours(&self) -> Option<&'static str> {
        let is_delivered = self.verdict == "delivered";
        let is_whole = matches!(self.shape.as_str(), "exact" | "spacing");
        if self.count > 1 {
            Some("TWICE")
        } else if is_delivered && self.count == 0 {
            Some("FALSE delivered")
        } else if self.verdict == "refused" && self.count > 0 {
            Some("FALSE refused")
        } else if is_delivered && !is_whole && !(self.is_merged() && self.shape == "merged") {
            Some("ALTERED")
        } else {
            None
        }
    }

    /// Whether somebody must look at it.
    pub(super) fn is_odd(&self) -> bool {
        let is_plain = match self.verdict.as_str() {
            "delivered" => self.reason.is_empty(),
            "refused" => self.by_person || self.reason.starts_with("copy_mode"),
            _ => false,
        };
        !is_plain || self.fault_of_ours().is_some() || self.person.contains("times") || !self.note.is_empty()
    }

    /// Why it is as it is, as far as that is plain.
    pub(super) fn explanation(&self) -> String {
        let mut said = self.note.clone();
        said.push_str(&self.person);
        said.push_str(match (self.fault_of_ours(), self.verdict.as_str(), self.by_person) {
            (Some(fault), _, _) => fault,
            (_, "delivered", true) => "a person's keys went in with it, and the verdict says so",
            (_, "unconfirmed", true) => "a person typed into the same composer, so that it can't be known",
            (_, "refused", false) => "refused without a person's doing: nothing was typed",
            (_, "unconfirmed", false) => "NOT EXPLAINED: nobody typed",
            _ => "NOT EXPLAINED",
        });
        said
    }

    /// As a line of its own.
    pub(super) fn write(&self, mut out: impl Write) {
        let line = serde_json::to_string(self).expect("a row is plain");
        writeln!(out, "{line}").expect("written");
    }
}
