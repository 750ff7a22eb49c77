//! `work list`, `show`, `tree`, `history` and `stats`.

use super::args::ListArgs;
use super::one_line;
use super::read::{self, Brief};
use crate::cli::error::CliError;
use crate::cli::output::Tone;
use crate::cli::{Session, follow, names, view};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most items of one tree that are shown.
const MOST_IN_TREE: usize = 10_000;

pub(super) fn list(session: &Session, args: &ListArgs) -> Result<(), CliError> {
    session.require_views()?;
    let agent = match args.agent.as_deref() {
        Some("human") => Some("human".to_owned()),
        Some(name) => Some(names::agent(&session.home, name)?),
        None => None,
    };
    let closed = matches!(args.status.as_deref(), Some("done" | "withdrawn"));
    let everything = args.all || closed;
    let ids = if everything { read::all_ids(&session.home)? } else { read::open_ids(&session.home)? };
    let mut items: Vec<(String, Brief)> = read::views(&session.home, &ids);
    let fits = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
    items.retain(|(_, item)| {
        (everything || item.is_open())
            && fits(args.status.as_deref(), &item.status)
            && fits(args.kind.as_deref(), &item.kind)
            && fits(agent.as_deref(), item.claimed_by.as_deref().unwrap_or_default())
    });
    items.sort_by_cached_key(|(_, item)| item.place());
    items.truncate(args.limit.unwrap_or(usize::MAX));
    if session.out.is_json() {
        let texts: Vec<&str> = items.iter().map(|(text, _)| text.trim()).collect();
        return session.out.line(&format!("[{}]", texts.join(",\n")));
    }
    if items.is_empty() {
        session.out.note("No work items. Make one with: tasuki work create TYPE TITLE");
        return Ok(());
    }
    let owners = items.iter().filter_map(|(_, item)| item.claimed_by.as_deref());
    let short = names::short(items.iter().map(|(_, item)| item.item_id.as_str()).chain(owners));
    let name = |id: &str| short.get(id).cloned().unwrap_or_else(|| id.to_owned());
    let row = |(_, item): &(String, Brief)| {
        let owner = item
            .claimed_by
            .as_deref()
            .map_or_else(|| "-".to_owned(), |id| if id == "human" { id.to_owned() } else { name(id) });
        let (kind, status, priority) = (item.kind.clone(), item.status.clone(), item.priority.clone());
        vec![name(&item.item_id), kind, status, priority, owner, one_line(&item.title)]
    };
    let rows: Vec<Vec<String>> = items.iter().map(row).collect();
    session.out.table(&["ITEM", "TYPE", "STATUS", "PRIORITY", "OWNER", "TITLE"], &rows)
}

fn find(session: &Session, name: &str) -> Result<Value, CliError> {
    session.require_views()?;
    let id = names::item(&session.home, name)?;
    let seen = view::read_json(&session.home.work_views().join(format!("{id}.json")))?;
    seen.ok_or_else(|| CliError::refused("no_item", "Work item not found"))
}

pub(super) fn one(session: &Session, name: &str) -> Result<(), CliError> {
    let seen = find(session, name)?;
    if session.out.is_json() {
        return session.out.document(&seen);
    }
    lines(&seen).iter().try_for_each(|line| session.out.line(line))
}

pub(in crate::cli) fn lines(seen: &Value) -> Vec<String> {
    let cell = |key: &str| one_line(&view::cell(seen, key));
    let mut lines = vec![format!("{} {}", cell("type"), cell("item_id")), format!("  {}", cell("title"))];
    let fields = [
        ("status", "status"),
        ("priority", "priority"),
        ("owner", "claimed_by"),
        ("held by", "held_by"),
        ("parent", "parent_id"),
        ("made", "created_at"),
        ("made by", "created_by"),
        ("completed", "completed_at"),
        ("by", "completed_by"),
        ("escalated", "escalated_at"),
        ("why", "escalation_reason"),
    ];
    for (name, key) in fields {
        let text =
            view::text(seen, key).map(|text| if key.ends_with("_at") { view::clock(text) } else { one_line(text) });
        lines.extend(text.map(|text| format!("  {name:<10} {text}")));
    }
    let children = seen.get("children").and_then(Value::as_array).map(Vec::len).unwrap_or_default();
    if children > 0 {
        lines.push(format!("  {:<10} {children}: tasuki work tree {}", "children", cell("item_id")));
    }
    if let Some(text) = view::text(seen, "description") {
        lines.push(String::new());
        lines.extend(text.lines().map(|line| format!("  {}", crate::core::text::sanitise(line))));
    }
    for (name, key) in [("output", "output"), ("output of the parent", "parent_output"), ("metadata", "metadata")] {
        let value = seen.get(key).filter(|value| value.as_object().is_some_and(|fields| !fields.is_empty()));
        lines.extend(value.map(|value| format!("  {name}\n{}", indented(&format!("{value:#}")))));
    }
    for comment in seen.get("comments").and_then(Value::as_array).into_iter().flatten() {
        let at = view::text(comment, "at").map(view::clock).unwrap_or_default();
        let (author, text) = (view::cell(comment, "author"), view::cell(comment, "text"));
        lines.push(format!("  {at}  {}: {}", one_line(&author), one_line(&text)));
    }
    lines
}

fn indented(text: &str) -> String {
    let plain = crate::core::text::plain_json(text).into_owned();
    plain.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

pub(super) fn tree(session: &Session, name: Option<&str>) -> Result<(), CliError> {
    session.require_views()?;
    let roots: Vec<String> = match name {
        Some(name) => vec![names::item(&session.home, name)?],
        None => roots(session)?,
    };
    let mut shown = Vec::new();
    for root in &roots {
        grow(session, root, 0, &mut shown);
    }
    if session.out.is_json() {
        let row = |(depth, item): &(usize, Brief)| {
            json!({ "depth": depth, "item_id": item.item_id, "type": item.kind, "title": item.title,
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
        let tone = match item.status.as_str() {
            "done" => Tone::Good,
            "escalated" => Tone::Bad,
            _ => Tone::Plain,
        };
        let status = session.out.paint(tone, &one_line(&item.status));
        session.out.line(&format!(
            "{}{id}  {}  {status}  {}",
            "  ".repeat(*depth),
            one_line(&item.kind),
            one_line(&item.title)
        ))?;
    }
    Ok(())
}

/// The topmost of the items that are not done.
fn roots(session: &Session) -> Result<Vec<String>, CliError> {
    let mut open: Vec<(String, Brief)> = read::views(&session.home, &read::open_ids(&session.home)?);
    open.retain(|(_, item)| item.is_open());
    let known: BTreeMap<&str, &Brief> = open.iter().map(|(_, item)| (item.item_id.as_str(), item)).collect();
    let mut found: Vec<(String, Brief)> = Vec::new();
    for item in known.values() {
        let mut top = (*item).clone();
        for _ in 0..64 {
            let Some(parent) = top.parent_id.as_deref().and_then(|id| read::brief(&session.home, id)) else { break };
            top = parent;
        }
        if !found.iter().any(|(id, _)| *id == top.item_id) {
            found.push((top.item_id.clone(), top));
        }
    }
    found.sort_by_cached_key(|(_, item)| item.place());
    Ok(found.into_iter().map(|(id, _)| id).collect())
}

fn grow(session: &Session, id: &str, depth: usize, shown: &mut Vec<(usize, Brief)>) {
    if depth > 64 || shown.len() >= MOST_IN_TREE {
        return;
    }
    let Some(item) = read::brief(&session.home, id) else { return };
    let children = item.children.clone();
    shown.push((depth, item));
    for child in &children {
        grow(session, child, depth + 1, shown);
    }
}

pub(super) fn history(session: &Session, name: &str) -> Result<(), CliError> {
    let seen = find(session, name)?;
    let entries = seen.get("history").and_then(Value::as_array).cloned().unwrap_or_default();
    if session.out.is_json() {
        return session.out.document(&Value::Array(entries));
    }
    let row = |entry: &Value| {
        let cell = |key: &str| view::cell(entry, key);
        let at = view::text(entry, "at").map(view::clock).unwrap_or_default();
        let after = entry.get("after_ms").and_then(Value::as_u64).map_or_else(|| "-".to_owned(), follow::span);
        let mut about: Vec<String> = [view::text(entry, "reason"), view::text(entry, "validation")]
            .into_iter()
            .flatten()
            .map(one_line)
            .collect();
        let fields = entry.get("output_summary").and_then(Value::as_array).cloned().unwrap_or_default();
        let fields: Vec<&str> = fields.iter().filter_map(Value::as_str).collect();
        if !fields.is_empty() {
            about.push(format!("output: {}", fields.join(", ")));
        }
        let children = entry.get("children").and_then(Value::as_array).map(Vec::len).unwrap_or_default();
        about.extend((children > 0).then(|| format!("children: {children}")));
        vec![at, cell("action"), cell("by"), cell("from"), cell("to"), after, about.join("; ")]
    };
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    session.out.table(&["WHEN", "WHAT", "BY", "FROM", "TO", "AFTER", "ABOUT"], &rows)
}

/// What the figures of an item's type need of it.
#[derive(Deserialize)]
struct Past {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default)]
    history: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    from: Option<String>,
    to: String,
    action: String,
    after_ms: Option<u64>,
}

/// How long something took, several times.
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

/// The figures of one type.
#[derive(Default)]
struct Figures {
    statuses: BTreeMap<String, u64>,
    waited: Spans,
    took: Spans,
}

pub(super) fn stats(session: &Session) -> Result<(), CliError> {
    session.require_views()?;
    let mut types: BTreeMap<String, Figures> = BTreeMap::new();
    for (_, item) in read::views::<Past>(&session.home, &read::all_ids(&session.home)?) {
        let figures = types.entry(item.kind).or_default();
        *figures.statuses.entry(item.status).or_default() += 1;
        for line in item.history {
            match (line.from.as_deref(), line.to.as_str(), line.action.as_str(), line.after_ms) {
                (Some("ready"), "claimed", _, Some(ms)) => figures.waited.add(ms),
                (Some("claimed"), _, "completed", Some(ms)) => figures.took.add(ms),
                _ => {}
            }
        }
    }
    let count = |figures: &Figures, status: &str| figures.statuses.get(status).copied().unwrap_or(0);
    const STATUSES: [&str; 5] = ["ready", "claimed", "done", "escalated", "withdrawn"];
    if session.out.is_json() {
        let row = |(kind, figures): (&String, &Figures)| {
            let mut row = json!({ "type": kind, "waited": figures.waited.json(), "took": figures.took.json() });
            STATUSES.iter().for_each(|status| row[*status] = json!(count(figures, status)));
            row
        };
        return session.out.document(&Value::Array(types.iter().map(row).collect()));
    }
    let span = |ms: Option<u64>| ms.map_or_else(|| "-".to_owned(), follow::span);
    let row = |(kind, figures): (&String, &Figures)| {
        let mut row = vec![kind.clone()];
        row.extend(STATUSES.iter().take(4).map(|status| count(figures, status).to_string()));
        row.extend([span(figures.waited.mean_ms()), span(figures.took.mean_ms())]);
        row
    };
    let rows: Vec<Vec<String>> = types.iter().map(row).collect();
    session.out.table(&["TYPE", "READY", "CLAIMED", "DONE", "ESCALATED", "WAITED", "TOOK"], &rows)
}
