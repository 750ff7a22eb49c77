//! `work list`, `show`, `tree`, `history` and `stats`.

use super::args::ListArgs;
use super::read;
use crate::cli::error::CliError;
use crate::cli::output::{Tone, one_line};
use crate::cli::unread::Unread;
use crate::cli::view::{ViewFile, said, shown};
use crate::cli::{CliSession, follow, home_option, names, past, view};
use crate::contract::work::{Action, EntryView, Status, WorkPast};
use crate::contract::{Word, WorkBrief, WorkView};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many items `work tree` shows at most, in all its trees together.
const MOST_IN_TREE: usize = 10_000;

pub(super) fn list(session: &CliSession, args: &ListArgs) -> Result<(), CliError> {
    session.require_views()?;
    let agent = match args.agent.as_deref() {
        Some("human") => Some("human".to_owned()),
        Some(name) => Some(names::agent(&session.home, name)?),
        None => None,
    };
    let closed = matches!(args.status.as_deref(), Some("done" | "withdrawn"));
    let everything = args.all || closed;
    let ids = if everything { read::all_ids(&session.home)? } else { read::open_ids(&session.home)? };
    let mut unread = Unread::default();
    let mut items: Vec<(String, WorkBrief)> = read::views(&session.home, &ids, &mut unread);
    session.warn(&unread);
    let fits = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
    items.retain(|(_, item)| {
        (everything || item.is_open())
            && fits(args.status.as_deref(), item.status.as_str())
            && fits(args.kind.as_deref(), &item.r#type)
            && fits(agent.as_deref(), item.claimed_by.as_deref().unwrap_or_default())
    });
    items.sort_by_cached_key(|(_, item)| item.place());
    items.truncate(args.limit.unwrap_or(usize::MAX));
    if session.out.is_json() {
        let texts: Vec<&str> = items.iter().map(|(text, _)| text.trim()).collect();
        return session.out.line(&format!("[{}]", texts.join(",\n")));
    }
    if items.is_empty() {
        session.out.note("No work items. Create one with: tasuki work create TYPE TITLE");
        return Ok(());
    }
    let owners = items.iter().filter_map(|(_, item)| item.claimed_by.as_deref());
    let short = names::short(items.iter().map(|(_, item)| item.item_id.as_str()).chain(owners));
    let name = |id: &str| short.get(id).cloned().unwrap_or_else(|| id.to_owned());
    let row = |(_, item): &(String, WorkBrief)| {
        let owner = item
            .claimed_by
            .as_deref()
            .map_or_else(|| "-".to_owned(), |id| if id == "human" { id.to_owned() } else { name(id) });
        let (status, priority) = (item.status.as_str().to_owned(), item.priority.as_str().to_owned());
        vec![name(&item.item_id), item.r#type.clone(), status, priority, owner, one_line(&item.title)]
    };
    let rows: Vec<Vec<String>> = items.iter().map(row).collect();
    session.out.table(&["ITEM", "TYPE", "STATUS", "PRIORITY", "OWNER", "TITLE"], &rows)
}

fn find(session: &CliSession, name: &str) -> Result<ViewFile<WorkView>, CliError> {
    session.require_views()?;
    let id = names::item(&session.home, name)?;
    let seen = past::item(&session.home, &id)?;
    seen.ok_or_else(|| CliError { code: "no_item".to_owned(), ..names::not_found("work item", name) })
}

pub(super) fn one(session: &CliSession, name: &str) -> Result<(), CliError> {
    let seen = find(session, name)?;
    if session.out.is_json() {
        return session.out.document(&seen.json());
    }
    lines(&seen).iter().try_for_each(|line| session.out.line(line))
}

pub(crate) fn lines(seen: &WorkView) -> Vec<String> {
    let cell = |text: &str| one_line(&shown(text));
    let (id, kind, title) = (cell(&seen.item_id), cell(&seen.r#type), cell(&seen.title));
    let mut lines = vec![format!("{kind} {id}"), format!("  {title}")];
    let line = |text: &str| said(text).map(one_line);
    let at = |at: &Option<String>| said(at.as_deref()).map(view::clock);
    let maybe = |text: &Option<String>| text.as_deref().and_then(line);
    let fields = [
        ("status", line(seen.status.as_str())),
        ("priority", line(seen.priority.as_str())),
        ("owner", maybe(&seen.claimed_by)),
        ("held by", maybe(&seen.held_by)),
        ("parent", maybe(&seen.parent_id)),
        ("created", said(seen.created_at.as_str()).map(view::clock)),
        ("created by", line(&seen.created_by)),
        ("completed", at(&seen.completed_at)),
        ("by", maybe(&seen.completed_by)),
        ("escalated", at(&seen.escalated_at)),
        ("why", maybe(&seen.escalation_reason)),
    ];
    for (name, text) in fields {
        lines.extend(text.map(|text| format!("  {name:<10} {text}")));
    }
    let children = seen.children.len();
    if children > 0 {
        lines.push(format!("  {:<10} {children}: {}", "children", home_option::fit(&format!("tasuki work tree {id}"))));
    }
    if let Some(text) = said(seen.description.as_deref()) {
        lines.push(String::new());
        lines.extend(text.lines().map(|line| format!("  {}", crate::core::text::sanitise(line))));
    }
    let output = |output: &Option<Value>| output.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, fields) in [
        ("output", output(&seen.output)),
        ("output of the parent", output(&seen.parent_output)),
        ("metadata", seen.metadata.clone()),
    ] {
        if !fields.is_empty() {
            lines.push(format!("  {name}\n{}", indented(&format!("{:#}", Value::Object(fields)))));
        }
    }
    for comment in &seen.comments {
        let at = said(comment.at.as_str()).map(view::clock).unwrap_or_default();
        lines.push(format!("  {at}  {}: {}", cell(&comment.author), cell(&comment.text)));
    }
    lines
}

fn indented(text: &str) -> String {
    let plain = crate::core::text::plain_json(text).into_owned();
    plain.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

pub(super) fn tree(session: &CliSession, name: Option<&str>) -> Result<(), CliError> {
    session.require_views()?;
    let mut unread = Unread::default();
    let roots: Vec<String> = match name {
        Some(name) => vec![names::item(&session.home, name)?],
        None => roots(session, &mut unread)?,
    };
    let mut shown = Vec::new();
    for root in &roots {
        grow(session, root, 0, &mut shown, &mut unread);
    }
    session.warn(&unread);
    if session.out.is_json() {
        let row = |(depth, item): &(usize, WorkBrief)| {
            json!({ "depth": depth, "item_id": item.item_id, "type": item.r#type, "title": item.title,
                "status": item.status, "parent_id": item.parent_id })
        };
        return session.out.document(&Value::Array(shown.iter().map(row).collect()));
    }
    if shown.is_empty() {
        session.out.note("No work items.");
    }
    let short = names::short(shown.iter().map(|(_, item)| item.item_id.as_str()));
    for (depth, item) in &shown {
        let id = short.get(&item.item_id).cloned().unwrap_or_default();
        let tone = match item.status.known() {
            Some(Status::Done) => Tone::Good,
            Some(Status::Escalated) => Tone::Bad,
            _ => Tone::Plain,
        };
        let status = session.out.paint(tone, &one_line(item.status.as_str()));
        session.out.line(&format!(
            "{}{id}  {}  {status}  {}",
            "  ".repeat(*depth),
            one_line(&item.r#type),
            one_line(&item.title)
        ))?;
    }
    Ok(())
}

/// The topmost ancestors of the open items, or those items themselves.
fn roots(session: &CliSession, unread: &mut Unread) -> Result<Vec<String>, CliError> {
    let mut open: Vec<(String, WorkBrief)> = read::views(&session.home, &read::open_ids(&session.home)?, unread);
    open.retain(|(_, item)| item.is_open());
    let known: BTreeMap<&str, &WorkBrief> = open.iter().map(|(_, item)| (item.item_id.as_str(), item)).collect();
    let mut found: Vec<(String, WorkBrief)> = Vec::new();
    for item in known.values() {
        let mut top = (*item).clone();
        for _ in 0..64 {
            let parent = top.parent_id.as_deref().and_then(|id| read::brief(&session.home, id, unread));
            let Some(parent) = parent else { break };
            top = parent;
        }
        if !found.iter().any(|(id, _)| *id == top.item_id) {
            found.push((top.item_id.clone(), top));
        }
    }
    found.sort_by_cached_key(|(_, item)| item.place());
    Ok(found.into_iter().map(|(id, _)| id).collect())
}

fn grow(session: &CliSession, id: &str, depth: usize, shown: &mut Vec<(usize, WorkBrief)>, unread: &mut Unread) {
    if depth > 64 || shown.len() >= MOST_IN_TREE {
        return;
    }
    let Some(item) = read::brief(&session.home, id, unread) else { return };
    let children = item.children.clone();
    shown.push((depth, item));
    for child in &children {
        grow(session, child, depth + 1, shown, unread);
    }
}

pub(super) fn history(session: &CliSession, name: &str) -> Result<(), CliError> {
    let seen = find(session, name)?;
    if session.out.is_json() {
        return session.out.document(&json!(seen.history));
    }
    let row = |entry: &EntryView| {
        let at = said(entry.at.as_str()).map(view::clock).unwrap_or_default();
        let after = entry.after_ms.map_or_else(|| "-".to_owned(), follow::span);
        let reason = said(entry.reason.as_deref()).map(one_line);
        let checked =
            said(entry.validation.as_deref()).map(|verdict| format!("check of the output: {}", one_line(verdict)));
        let mut about: Vec<String> = [reason, checked].into_iter().flatten().collect();
        let fields = entry.output_summary.as_deref().unwrap_or_default();
        if !fields.is_empty() {
            about.push(format!("fields of the output: {}", fields.join(", ")));
        }
        let children = entry.children.len();
        about.extend((children > 0).then(|| format!("children: {children}")));
        let (what, by) = (shown(entry.action.as_str()), shown(entry.by.as_str()));
        let (from, to) = (shown(entry.from.as_ref().map(Word::as_str)), shown(entry.to.as_str()));
        vec![at, what, by, from, to, after, about.join("; ")]
    };
    let rows: Vec<Vec<String>> = seen.history.iter().map(row).collect();
    session.out.table(&["WHEN", "WHAT", "BY", "FROM", "TO", "TIME IN FROM", "DETAILS"], &rows)
}

#[derive(Default)]
struct Spans {
    count: u64,
    sum_ms: u64,
    longest_ms: u64,
}

impl Spans {
    fn add(&mut self, ms: u64) {
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
        self.longest_ms = self.longest_ms.max(ms);
    }

    fn mean_ms(&self) -> Option<u64> {
        self.sum_ms.checked_div(self.count)
    }

    fn json(&self) -> Value {
        json!({ "count": self.count, "mean_ms": self.mean_ms(), "longest_ms": (self.count > 0).then_some(self.longest_ms) })
    }
}

#[derive(Default)]
struct Figures {
    statuses: BTreeMap<Status, u64>,
    waited: Spans,
    took: Spans,
}

pub(super) fn stats(session: &CliSession) -> Result<(), CliError> {
    session.require_views()?;
    let mut types: BTreeMap<String, Figures> = BTreeMap::new();
    let mut unread = Unread::default();
    let items: Vec<(String, WorkPast)> = read::views(&session.home, &read::all_ids(&session.home)?, &mut unread);
    session.warn(&unread);
    for (_, item) in items {
        let figures = types.entry(item.r#type).or_default();
        if let Some(status) = item.status.known() {
            *figures.statuses.entry(status).or_default() += 1;
        }
        for line in item.history {
            let from = line.from.as_ref().and_then(Word::known);
            match (from, line.to.known(), line.action.known(), line.after_ms) {
                (Some(Status::Ready), Some(Status::Claimed), _, Some(ms)) => figures.waited.add(ms),
                (Some(Status::Claimed), _, Some(Action::Completed), Some(ms)) => figures.took.add(ms),
                _ => {}
            }
        }
    }
    let count = |figures: &Figures, status: &Status| figures.statuses.get(status).copied().unwrap_or(0);
    if session.out.is_json() {
        let row = |(kind, figures): (&String, &Figures)| {
            let mut row = json!({ "type": kind, "waited": figures.waited.json(), "took": figures.took.json() });
            Status::ALL.iter().for_each(|status| row[status.as_str()] = json!(count(figures, status)));
            row
        };
        return session.out.document(&Value::Array(types.iter().map(row).collect()));
    }
    let span = |ms: Option<u64>| ms.map_or_else(|| "-".to_owned(), follow::span);
    let row = |(kind, figures): (&String, &Figures)| {
        let mut row = vec![kind.clone()];
        row.extend(Status::ALL.iter().take(4).map(|status| count(figures, status).to_string()));
        row.extend([span(figures.waited.mean_ms()), span(figures.took.mean_ms())]);
        row
    };
    let rows: Vec<Vec<String>> = types.iter().map(row).collect();
    session.out.table(&["TYPE", "READY", "CLAIMED", "DONE", "ESCALATED", "WAITED", "TOOK"], &rows)
}
