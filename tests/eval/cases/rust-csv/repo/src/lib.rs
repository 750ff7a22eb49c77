pub fn row(cells: &[&str]) -> String {
    cells.join(",")
}
