//! Compares where the successor begins with the checkpoint that the document states.

use crate::contract::NoticeCode;
use crate::core::handoff::row;
use crate::core::id::HandoffId;
use crate::core::notice::OperatorNotice;
use crate::core::rows::ack::{Ack, Received};
use crate::core::text::{normalise, quotable};
use crate::core::tx::Tx;
use serde_json::json;

/// The most characters of an ACK that the warning quotes.
const MAX_QUOTED: usize = 600;

/// Warns the operator if the successor starts from another point than the document says. The handoff continues.
pub(super) fn compare(tx: &mut Tx<'_>, id: HandoffId, received: &Received) {
    let ack = tx.handoff(&id).and_then(|handoff| handoff.ack.as_ref());
    let Some(documented) = ack.and_then(|ack| other_than(ack, received)).map(str::to_owned) else { return };
    let starting_from = quotable(&normalise(&received.starting_from), MAX_QUOTED);
    let what = format!("the successor starts from “{starting_from}”, and the document says “{documented}”");
    row::warn(tx, id, &what);
    let details = json!({ "documented": documented, "starting_from": starting_from });
    let message = format!("Handoff {}: {what}", id.short());
    let notice = OperatorNotice::new(NoticeCode::CheckpointDiffers, message).details(details);
    tx.notify_operator(notice.agent(received.agent_id).handoff(id));
}

/// The checkpoint that the document states, if the successor names another one.
pub(super) fn other_than<'a>(ack: &'a Ack, received: &Received) -> Option<&'a str> {
    ack.checkpoint.as_deref().filter(|documented| !is_same(documented, &received.starting_from))
}

/// Whether two checkpoints are the same. White space, the case of letters, quotation marks and backticks make no
/// difference, and either may say more than the other.
pub(super) fn is_same(documented: &str, starting_from: &str) -> bool {
    let (documented, starting_from) = (plain(documented), plain(starting_from));
    holds(&documented, &starting_from) || holds(&starting_from, &documented)
}

/// The words of a checkpoint in lower case, without quotation marks, emphasis and punctuation at its end.
fn plain(text: &str) -> String {
    let is_mark = |c: char| matches!(c, '`' | '"' | '\'' | '*' | '“' | '”' | '‘' | '’' | '„' | '«' | '»');
    let unmarked: String = text.chars().filter(|c| !is_mark(*c)).collect();
    let words = normalise(&unmarked).to_lowercase();
    words.trim_end_matches(['.', ',', ';', ':', '!', '。']).to_owned()
}

/// Whether `whole` holds `part`, but not within a word or a number: “step 1” is not in “step 12”.
fn holds(whole: &str, part: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_cut = |before: Option<char>, after: Option<char>| is_word(before) && is_word(after);
    let is_whole = |at: usize| {
        let (before, after) = (&whole[..at], &whole[at + part.len()..]);
        !is_cut(before.chars().next_back(), part.chars().next())
            && !is_cut(part.chars().next_back(), after.chars().next())
    };
    if part.is_empty() { whole.is_empty() } else { whole.match_indices(part).any(|(at, _)| is_whole(at)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_checkpoint_is_written_makes_no_difference() {
        for (documented, starting_from) in [
            ("step 2", "Step  2."),
            ("the test `login::twice` in src/login.rs", "the test login::twice in src/login.rs"),
            ("step 2", "from “step 2”, as the document says"),
            ("step 2 of 5: the parser", "step 2"),
            ("commit 4f2a9c1, then the docs", "commit 4f2a9c1"),
            ("テストから", "次のテストから始める"),
            ("", ""),
        ] {
            assert!(is_same(documented, starting_from), "{documented} / {starting_from}");
        }
    }

    #[test]
    fn different_checkpoints_are_told_apart() {
        for (documented, starting_from) in [
            ("step 2", "step 3"),
            ("step 1", "step 12"),
            ("step 12", "step 1"),
            ("the parser", "the parsers"),
            ("step 2", ""),
            ("`", "step 2"),
        ] {
            assert!(!is_same(documented, starting_from), "{documented} / {starting_from}");
        }
    }
}
