//! How it went: a row for each CLI, and each odd delivery with what explains it.

use super::judge::Row;
use std::collections::BTreeMap;

/// What of each CLI is counted.
const HEADS: [&str; 13] = [
    "CLI",
    "n",
    "delivered",
    "merged_draft",
    "refused",
    "unconfirmed",
    "of these arrived",
    "no person",
    "no answer",
    "TWICE",
    "FALSE",
    "ALTERED",
    "p50 / p99 s",
];

/// Prints it.
pub(super) fn print(rows: &[Row], broken: &[String]) {
    let mut clis: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        clis.entry(&row.cli).or_default().push(row);
    }
    println!("\n| {} |\n|{}", HEADS.join(" | "), "---|".repeat(HEADS.len()));
    for (cli, rows) in &clis {
        line(cli, rows);
    }
    line("all", &rows.iter().collect::<Vec<_>>());
    causes(rows);
    let mut odd: Vec<&Row> = rows.iter().filter(|row| row.is_odd()).collect();
    odd.sort_by_key(|row| (row.fault_of_ours().is_none(), &row.cli, row.number));
    println!("\n{} odd:", odd.len());
    for row in odd {
        println!(
            "{} --seed {} --from {}: {} under {}: {} {} after {:.1} s; the model was told {} times{}{}: {}",
            row.cli,
            row.seed,
            row.number,
            row.kind,
            row.fault,
            row.verdict,
            row.reason,
            row.seconds,
            row.count,
            if row.shape.is_empty() { "" } else { ", " },
            row.shape,
            row.explanation()
        );
        if row.fault_of_ours().is_some() || row.explanation().contains("NOT EXPLAINED") {
            println!("    {}", row.screen.replace('\n', "\n    "));
        }
    }
    if !broken.is_empty() {
        println!("\n{} parts ended before their time:\n{}", broken.len(), broken.join("\n"));
    }
}

fn line(name: &str, rows: &[&Row]) {
    let number = |is: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count();
    let is = |word: &'static str| move |row: &Row| row.verdict == word;
    let fault = |word: &'static str| move |row: &Row| row.fault_of_ours().is_some_and(|fault| fault.starts_with(word));
    let mut seconds: Vec<f64> = rows.iter().filter(|row| row.verdict == "delivered").map(|row| row.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let at = |share: usize| seconds.get((seconds.len() * share / 100).min(seconds.len().saturating_sub(1)));
    let told = |share| at(share).map_or("-".to_owned(), |seconds| format!("{seconds:.1}"));
    let cells = [
        name.to_owned(),
        rows.len().to_string(),
        number(&is("delivered")).to_string(),
        number(&|row| row.verdict == "delivered" && row.reason == "merged_draft").to_string(),
        number(&is("refused")).to_string(),
        number(&is("unconfirmed")).to_string(),
        number(&|row| row.verdict == "unconfirmed" && row.count > 0).to_string(),
        number(&|row| row.verdict == "unconfirmed" && !row.by_person).to_string(),
        number(&is("none")).to_string(),
        number(&fault("TWICE")).to_string(),
        number(&fault("FALSE")).to_string(),
        number(&fault("ALTERED")).to_string(),
        format!("{} / {}", told(50), told(99)),
    ];
    println!("| {} |", cells.join(" | "));
}

/// Verdicts by fault.
fn causes(rows: &[Row]) {
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for row in rows {
        let reason = row.reason.split(' ').next().unwrap_or_default();
        *counts.entry((&row.fault, format!("{} {reason}", row.verdict))).or_default() += 1;
    }
    println!("\n| fault | verdict | n |\n|---|---|---|");
    for ((fault, verdict), count) in counts {
        println!("| {fault} | {} | {count} |", verdict.trim());
    }
}
