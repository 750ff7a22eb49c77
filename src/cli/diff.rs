//! The difference of two texts, line by line, as `diff -u` shows it.

/// How many unchanged lines are shown around a change.
const AROUND: usize = 3;
/// Above this many pairs of lines the changed middle is shown as a whole.
const MOST_PAIRS: usize = 4_000_000;

/// One line of the comparison: in both, only in the old text, only in the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'t> {
    Both(&'t str),
    Old(&'t str),
    New(&'t str),
}

/// The hunks in which two texts differ; empty where they are the same.
pub(super) fn unified(old: &str, new: &str) -> String {
    let lines = compare(&split(old), &split(new));
    let mut shown = vec![false; lines.len()];
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| !matches!(line, Line::Both(_))) {
        let end = (at + AROUND + 1).min(lines.len());
        shown[at.saturating_sub(AROUND)..end].fill(true);
    }
    let (mut text, mut old_at, mut new_at) = (String::new(), 0, 0);
    for (at, line) in lines.iter().enumerate() {
        if shown[at] && (at == 0 || !shown[at - 1]) {
            let end = (at..lines.len()).find(|at| !shown[*at]).unwrap_or(lines.len());
            text += &header(&lines[at..end], old_at, new_at);
        }
        let (sign, content) = match line {
            Line::Both(content) => (' ', content),
            Line::Old(content) => ('-', content),
            Line::New(content) => ('+', content),
        };
        old_at += usize::from(!matches!(line, Line::New(_)));
        new_at += usize::from(!matches!(line, Line::Old(_)));
        if shown[at] {
            text.push(sign);
            text.push_str(content);
            text.push_str(if content.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" });
        }
    }
    text
}

fn header(hunk: &[Line<'_>], old_at: usize, new_at: usize) -> String {
    let old = hunk.iter().filter(|line| !matches!(line, Line::New(_))).count();
    let new = hunk.iter().filter(|line| !matches!(line, Line::Old(_))).count();
    let place = |at: usize, count: usize| format!("{},{count}", if count == 0 { at } else { at + 1 });
    format!("@@ -{} +{} @@\n", place(old_at, old), place(new_at, new))
}

fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The shortest way from one text to the other.
fn compare<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let same_start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[same_start..], &new[same_start..]);
    let same_end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_mid, new_mid) = (&old_rest[..old_rest.len() - same_end], &new_rest[..new_rest.len() - same_end]);
    let mut lines: Vec<Line<'t>> = old[..same_start].iter().map(|line| Line::Both(line)).collect();
    lines.extend(middle(old_mid, new_mid));
    lines.extend(old_rest[old_mid.len()..].iter().map(|line| Line::Both(line)));
    lines
}

fn middle<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let (rows, columns) = (old.len(), new.len());
    if rows.saturating_mul(columns) > MOST_PAIRS {
        return old.iter().map(|line| Line::Old(line)).chain(new.iter().map(|line| Line::New(line))).collect();
    }
    // longest[a][b]: how many lines the ends of both texts, from a and from b on, can have in common.
    let mut longest = vec![vec![0_u32; columns + 1]; rows + 1];
    for a in (0..rows).rev() {
        for b in (0..columns).rev() {
            longest[a][b] = match old[a] == new[b] {
                true => longest[a + 1][b + 1] + 1,
                false => longest[a + 1][b].max(longest[a][b + 1]),
            };
        }
    }
    let (mut a, mut b, mut lines) = (0, 0, Vec::new());
    while a < rows || b < columns {
        if a < rows && b < columns && old[a] == new[b] {
            lines.push(Line::Both(old[a]));
            (a, b) = (a + 1, b + 1);
        } else if b == columns || (a < rows && longest[a + 1][b] >= longest[a][b + 1]) {
            lines.push(Line::Old(old[a]));
            a += 1;
        } else {
            lines.push(Line::New(new[b]));
            b += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_with_its_surroundings() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
        let new = "1\n2\n3\n4\nx\n6\n7\n8\n9\n10\ny";
        let expected = "@@ -2,9 +2,10 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n 9\n 10\n+y\n\\ No newline at end of file\n";
        assert_eq!(unified(old, new), expected);
        assert_eq!(unified(old, old), "");
        assert_eq!(unified("", "a\n"), "@@ -0,0 +1,1 @@\n+a\n");
    }

    #[test]
    fn changes_far_from_each_other_are_shown_apart() {
        let old: String = (0..40).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 7\n", "").replace("line 20\n", "line 20\nnew\n");
        let shown = unified(&old, &new);
        assert_eq!(shown.matches("@@ -").count(), 2, "{shown}");
        assert!(shown.contains("@@ -5,7 +5,6 @@\n") && shown.contains("@@ -19,6 +18,7 @@\n"), "{shown}");
    }
}
