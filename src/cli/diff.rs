//! The difference between two texts, line by line, as `diff -u` shows it.

use similar::TextDiff;

/// The hunks in which two texts differ, with three unchanged lines around each; empty if they are the same.
pub(super) fn unified(old: &str, new: &str) -> String {
    TextDiff::from_lines(old, new).unified_diff().to_string()
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
        assert_eq!(unified("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
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
