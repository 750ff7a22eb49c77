//! The guide's table of figures has every row that `scripts/bench` measures, in its order and with its goal, and no
//! other.

#[path = "../bench/rows.rs"]
mod rows;

/// First and last column of each row below a heading.
fn rows_of_the_guide(heading: &str) -> Vec<(String, String)> {
    let text = include_str!("../../data/guide/performance.md");
    let section = text.split(&format!("\n## {heading}\n")).nth(1).expect("a section of this name");
    let section = section.split("\n## ").next().unwrap_or_default();
    let table = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = table.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>());
    cells.map(|cells| (cells[0].to_owned(), cells[cells.len() - 1].to_owned())).collect()
}

fn check(heading: &str, figures: &[rows::Figure]) {
    let measured: Vec<(String, String)> = figures
        .iter()
        .map(|figure| (figure.name.to_owned(), if figure.goal.is_empty() { "none" } else { figure.goal }.to_owned()))
        .collect();
    let shown: Vec<(String, String)> = rows_of_the_guide(heading)
        .into_iter()
        .map(|(name, goal)| (name, goal.trim_end_matches(": **missed**").to_owned()))
        .collect();
    assert_eq!(shown, measured, "data/guide/performance.md is to have what `scripts/bench --markdown` writes");
}

#[test]
fn the_tables_in_the_guide_have_each_figure_that_is_measured_and_its_goal() {
    check("Speed and size", rows::ALL);
    check("A fleet of 200 hosts", rows::FLEET);
}
