//! Speed and size: each figure beside a floor or a rival that is measured in the same run, in turn with it. It prints a
//! table and never fails because a goal was missed. `scripts/bench` runs it and tidies up.
//!
//! `fleet` is measured only where it is named, and has a table of its own: it needs the feature of this name, and a
//! NATS server.
//!
//! `against` measures this build beside another one of the program. `rows` names the figures; `place` is where
//! everything lies; `bare` is the program that does only what can't be left out; `drops` drops requests and sees
//! results; `sample` and `table` count and print; the other files are one figure each.

#[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "the rows of the fleet"))]
#[macro_use]
mod rows;

mod against;
mod bare;
mod commands;
mod crowd;
mod documents;
mod drops;
#[cfg(feature = "fleet")]
mod fleet;
mod flood;
mod handoff;
mod history;
mod hook;
mod idle;
mod latency;
mod panes;
mod place;
mod sample;
mod serve;
mod size;
mod start;
mod table;
mod top;
mod work;

use place::Place;
use table::Row;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Enough for steady medians.
    Full,
    /// Under a minute in all.
    Quick,
}

impl Length {
    /// One of two amounts.
    pub(crate) fn pick<T>(self, full: T, quick: T) -> T {
        if self == Length::Full { full } else { quick }
    }
}

type Figure = fn(&Place, Length) -> Vec<Row>;

const FIGURES: [(&str, Figure); 14] = [
    ("hook", hook::measure),
    ("latency", latency::measure),
    ("flood", flood::measure),
    ("panes", panes::measure),
    ("handoff", handoff::measure),
    ("crowd", crowd::measure),
    ("idle", idle::measure),
    ("start", start::measure),
    ("documents", documents::measure),
    ("work", work::measure),
    ("commands", commands::measure),
    ("top", top::measure),
    ("serve", serve::measure),
    ("size", size::measure),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, dir] = args.as_slice()
        && word == bare::WORD
    {
        return bare::main(dir.as_ref());
    }
    let length = if args.iter().any(|arg| arg == "--quick") { Length::Quick } else { Length::Full };
    let wanted = |name: &str| {
        let mut named = args.iter().filter(|arg| !arg.starts_with('-')).peekable();
        named.peek().is_none() || named.any(|arg| arg == name)
    };
    let place = Place::new();
    let write = if args.iter().any(|arg| arg == "--markdown") { table::markdown } else { table::plain };
    #[cfg(feature = "fleet")]
    if args.iter().any(|arg| arg == "fleet") {
        let rows = fleet::measure(&place, length);
        println!("{}\n{}", table::machine(&place), write(&rows));
        assert!(
            rows.iter().map(|row| row.figure).eq(rows::FLEET.iter().copied()),
            "every figure is measured, in its order"
        );
        return;
    }
    if let Some(at) = args.iter().position(|arg| arg == "--against") {
        let other = args.get(at + 1).expect("--against PROGRAM");
        println!("{}\n{}", table::machine(&place), write(&against::measure(other, &place, length)));
        return;
    }
    let mut rows = Vec::new();
    for (name, measure) in FIGURES.iter().filter(|(name, _)| wanted(name)) {
        eprintln!("measuring: {name}");
        rows.extend(measure(&place, length));
    }
    println!("{}", table::machine(&place));
    if length == Length::Quick {
        println!("Quick: fewer samples, and 20,000 work items instead of 100,000.\n");
    }
    println!("{}", write(&rows));
    let known = rows::ALL.iter().copied();
    assert!(
        args.iter().any(|arg| !arg.starts_with('-')) || rows.iter().map(|row| row.figure).eq(known),
        "every figure of rows.rs is measured, in its order"
    );
}
