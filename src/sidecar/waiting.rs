//! Files that could not be written and wait for the next try.

use crate::spool::OutputFile;
use std::collections::{BTreeMap, HashMap};

/// The files in the order in which they are tried, each with its text. A file waits once: a later text replaces an
/// earlier one. No operation takes longer because many files wait, as on a full disk.
#[derive(Debug, Default)]
pub(super) struct WaitingFiles {
    texts: BTreeMap<u64, (OutputFile, String)>,
    numbers: HashMap<OutputFile, u64>,
    next: u64,
}

impl WaitingFiles {
    /// Puts a file at the end.
    pub(super) fn push(&mut self, place: OutputFile, text: String) {
        self.remove(&place);
        self.numbers.insert(place.clone(), self.next);
        self.texts.insert(self.next, (place, text));
        self.next += 1;
    }

    /// Takes the file that has waited longest since its last try.
    pub(super) fn pop(&mut self) -> Option<(OutputFile, String)> {
        let (_, (place, text)) = self.texts.pop_first()?;
        self.numbers.remove(&place);
        Some((place, text))
    }

    pub(super) fn remove(&mut self, place: &OutputFile) {
        if let Some(number) = self.numbers.remove(place) {
            self.texts.remove(&number);
        }
    }

    pub(super) fn places(&self) -> impl Iterator<Item = &OutputFile> {
        self.numbers.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_waits_once_with_its_latest_text_and_is_tried_in_turn() {
        let place = |number: u128| OutputFile::Agent(crate::core::id::AgentId(uuid::Uuid::from_u128(number)));
        let mut waiting = WaitingFiles::default();
        for (number, text) in [(1, "old"), (2, "two"), (1, "new"), (3, "three")] {
            waiting.push(place(number), text.to_owned());
        }
        waiting.remove(&place(3));
        assert_eq!((waiting.len(), waiting.places().count()), (2, 2));
        assert_eq!(waiting.pop(), Some((place(2), "two".to_owned())));
        assert_eq!(waiting.pop(), Some((place(1), "new".to_owned())));
        assert!(waiting.pop().is_none() && waiting.is_empty());
    }
}
