//! Turns: submits a prompt, and carries out what [`super::plan`] has planned.

use super::app::App;
use super::hooks::new_id;
use super::model::{Task, understand};
use super::plan::{self, Act};
use super::turn::Turn;
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::Instant;

/// The largest number of prompts that wait for the running turn.
const MAX_QUEUE: usize = 100;

impl App {
    /// A prompt was submitted. While a turn runs it is queued, and its receipt has the running turn's id.
    pub(super) fn submit(&mut self, text: &str, now: Instant) {
        self.recorder.prompt(text);
        self.echo(text);
        if self.faults.dies_at("prompt") {
            self.die();
        }
        if !self.session_reported {
            self.report_session();
        }
        if self.turn.is_none() && self.faults.has("queue") {
            let own = "What does this project do?";
            let id = new_id();
            self.report_prompt(&id, own);
            self.begin(own, id, now);
        }
        let running = self.turn.as_ref().map(|turn| turn.id.clone());
        let id = running.clone().unwrap_or_else(new_id);
        self.report_prompt(&id, text);
        if self.faults.dies_at("turn") {
            self.die();
        }
        if self.faults.has("drop_prompt") {
            return;
        }
        if running.is_none() {
            self.begin(text, id, now);
        } else if self.queue.len() < MAX_QUEUE {
            self.queue.push_back(text.to_owned());
        } else {
            self.say("Too many prompts are waiting.");
        }
    }

    fn report_prompt(&mut self, id: &str, text: &str) {
        let prompt = match self.faults.text("merge") {
            Some(words) => format!("{words} {text}"),
            None if self.faults.has("cut") => second_half(text).to_owned(),
            None => text.to_owned(),
        };
        let text = prompt.as_str();
        let prompt = if self.faults.has("wrap") {
            format!("<pasted_content id=\"d675\">\n{text}\n</pasted_content id=\"d675\">")
        } else {
            text.to_owned()
        };
        self.hooks.fire("UserPromptSubmit", json!({"prompt_id": id, "prompt": prompt}), &self.faults);
    }

    fn begin(&mut self, prompt: &str, id: String, now: Instant) {
        self.transcript.user(prompt, &self.faults, now);
        let (prompt, task) = match understand(prompt) {
            Task::Follow(path) => match self.read_with_tool(&path, now) {
                Ok(text) => (text.clone(), Some(understand(&text)).filter(|task| !matches!(task, Task::Follow(_)))),
                Err(_) => (prompt.to_owned(), None),
            },
            task => (prompt.to_owned(), Some(task)),
        };
        let task = task.unwrap_or(Task::Answer);
        if !matches!(task, Task::Write(_) | Task::Reply) {
            self.memory.remember(&prompt);
        }
        let acts = plan::turn(&prompt, &task, &self.memory, &self.faults).into();
        self.turn = Some(Turn { id, acts, due: Some(now), began: now, last_said: String::new() });
    }

    pub(super) fn next_in_queue(&mut self, now: Instant) {
        if let Some(prompt) = self.queue.pop_front() {
            self.begin(&prompt, new_id(), now);
        }
    }

    /// Carries out the acts that are due.
    pub fn advance(&mut self, now: Instant) {
        self.transcript.advance(now);
        while self.dialog.is_none()
            && let Some(mut turn) = self.turn.take()
        {
            let Some(act) = turn.next(now) else {
                self.turn = Some(turn);
                break;
            };
            if let Some(turn) = self.perform(act, turn, now) {
                self.turn = Some(turn);
            } else {
                self.next_in_queue(now);
            }
        }
        for mut turn in std::mem::take(&mut self.late) {
            while let Some(act) = turn.next(now) {
                match act {
                    Act::Stop { .. } => self.report_stop(&turn, false),
                    act => self.act_on_files(&act, now),
                }
            }
            if turn.due.is_some() {
                self.late.push(turn);
            }
        }
    }

    /// Carries out one act; returns the turn if it continues.
    fn perform(&mut self, act: Act, mut turn: Turn, now: Instant) -> Option<Turn> {
        match act {
            Act::Say(text) => self.answer(vec![text], &mut turn, now),
            Act::Reply(blocks) => self.answer(blocks, &mut turn, now),
            Act::Read(path) => {
                let answer = match self.read_with_tool(&path, now) {
                    Ok(text) => self.memory.inherit(&text),
                    Err(why) => format!("I cannot read {}: {why}", path.display()),
                };
                self.answer(vec![answer], &mut turn, now);
            }
            Act::Dialog(question) => self.open_dialog(&question),
            Act::Look => self.look(now),
            Act::Run(words) => self.run_with_tool(&words, now),
            Act::Nested => self.hooks.run_nested(),
            Act::Clear => self.change_session(),
            Act::Die => self.die(),
            Act::Interrupt => {
                self.say("Interrupted.");
                return None;
            }
            Act::Fail(error) => {
                self.say(&error);
                let event = json!({"prompt_id": turn.id, "error": "server_error", "last_assistant_message": error});
                self.hooks.fire("StopFailure", event, &self.faults);
                return None;
            }
            Act::Stop { background: true } => self.report_stop(&turn, true),
            Act::EarlyStop => self.report_stop(&turn, false),
            Act::Stop { background: false } => {
                self.report_stop(&turn, false);
                if self.faults.dies_at("stopped") {
                    self.die();
                }
                turn.due = Some(now);
                self.late.push(turn);
                return None;
            }
            act => self.act_on_files(&act, now),
        }
        Some(turn)
    }

    /// Answers with one message of several blocks. The Stop reports only the last block, as in the real CLIs.
    fn answer(&mut self, mut blocks: Vec<String>, turn: &mut Turn, now: Instant) {
        blocks.iter().for_each(|block| self.say(block));
        self.transcript.assistant(&blocks, &self.faults, now);
        turn.last_said = blocks.pop().unwrap_or_default();
    }

    fn report_stop(&mut self, turn: &Turn, background: bool) {
        let tasks = if background { json!([{"id": "b1", "type": "shell"}]) } else { json!([]) };
        let event = json!({
            "prompt_id": turn.id,
            "stop_hook_active": false,
            "last_assistant_message": turn.last_said,
            "background_tasks": tasks,
        });
        self.hooks.fire("Stop", event, &self.faults);
    }

    fn act_on_files(&mut self, act: &Act, now: Instant) {
        let done = match act {
            Act::Create(path, bytes) => fs::write(path, bytes),
            Act::Append(path, bytes) => {
                OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(bytes))
            }
            Act::Folder(path) => fs::create_dir(path),
            Act::Link(path, target) => std::os::unix::fs::symlink(target, path),
            Act::Acknowledge(actions) => {
                self.note_acknowledgement(actions, now);
                super::acknowledge::begin(actions.clone());
                Ok(())
            }
            _ => Ok(()),
        };
        self.note_writing(act, &done, now);
        if let Err(why) = done {
            self.say(&format!("I cannot write: {why}"));
        }
    }
}

fn second_half(text: &str) -> &str {
    let middle = (text.len() / 2..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[middle..]
}
