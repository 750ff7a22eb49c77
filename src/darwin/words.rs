//! Takes apart the bytes in which the kernel gives a process's arguments and environment (`KERN_PROCARGS2`).

/// How many arguments, and how many variables, are read of one process at most.
const MOST_WORDS: usize = 65_536;

/// The arguments and the environment with which a process was started. They are bytes, because they need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartWords<'b> {
    /// The program's name first.
    pub arguments: Vec<&'b [u8]>,
    /// `NAME=value` each.
    pub environment: Vec<&'b [u8]>,
}

/// Reads the arguments and the environment of a process. The bytes hold the number of arguments, the path of the
/// program, zeros up to the next aligned place, the arguments, and the environment. A zero follows the path, each
/// argument and each variable. The process itself may have overwritten everything except the number. `None` if the
/// bytes are too short or the number can't be right. A last word that was cut off is left out.
#[must_use]
pub fn start_words(bytes: &[u8]) -> Option<StartWords<'_>> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    let number = usize::try_from(i32::from_ne_bytes(*number)).ok().filter(|number| *number <= MOST_WORDS)?;
    let path_end = rest.iter().position(|byte| *byte == 0)?;
    let padded = &rest[path_end..];
    let start = padded.iter().position(|byte| *byte != 0).unwrap_or(padded.len());
    let mut words = padded[start..].split_inclusive(|byte| *byte == 0).filter_map(|word| word.strip_suffix(b"\0"));
    let arguments: Vec<&[u8]> = words.by_ref().take(number).collect();
    // An empty word ends the environment. The kernel may put words of its own after it.
    let environment = words.take_while(|word| !word.is_empty()).take(MOST_WORDS).collect();
    Some(StartWords { arguments, environment })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes that the kernel would give, with zeros between the path and the words.
    fn said(number: i32, path: &str, words: &[&str]) -> Vec<u8> {
        let mut bytes = number.to_ne_bytes().to_vec();
        bytes.extend_from_slice(path.as_bytes());
        bytes.push(0);
        while !bytes.len().is_multiple_of(8) {
            bytes.push(0);
        }
        for word in words {
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        }
        bytes
    }

    fn texts(words: &[&[u8]]) -> Vec<String> {
        words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    #[test]
    fn arguments_and_environment_are_told_apart_by_the_number_of_arguments() {
        let path = "/Users/ada/Library/Application Support/bin/claude";
        let words = ["claude", "--append system prompt", "", "A=1", "TASUKI_CREATION=7f-1", "", "ptr_munge=", "x=y"];
        let bytes = said(3, path, &words);
        let found = start_words(&bytes).expect("well formed");
        assert_eq!(texts(&found.arguments), ["claude", "--append system prompt", ""]);
        assert_eq!(texts(&found.environment), ["A=1", "TASUKI_CREATION=7f-1"]);
    }

    #[test]
    fn paths_of_every_length_are_padded_and_none_takes_the_first_argument_with_it() {
        for length in 1..40 {
            let bytes = said(1, &"p".repeat(length), &["zsh", "HOME=/Users/ada"]);
            let found = start_words(&bytes).expect("well formed");
            assert_eq!(
                (texts(&found.arguments), texts(&found.environment)),
                (vec!["zsh".into()], vec!["HOME=/Users/ada".into()])
            );
        }
    }

    #[test]
    fn what_was_cut_off_is_left_out() {
        let bytes = said(2, "/bin/sleep", &["sleep", "600", "A=1", "B=2"]);
        let cut = |by: usize| {
            start_words(&bytes[..bytes.len() - by]).map(|found| (texts(&found.arguments), texts(&found.environment)))
        };
        let both = vec!["sleep".to_owned(), "600".to_owned()];
        assert_eq!(cut(1), Some((both.clone(), vec!["A=1".to_owned()])));
        assert_eq!(cut("A=1.B=2.".len()), Some((both, vec![])));
        assert_eq!(cut("600.A=1.B=2.".len()), Some((vec!["sleep".to_owned()], vec![])));
        assert_eq!(start_words(&bytes[..9]), None, "within the path");
        assert_eq!(start_words(&bytes[..3]), None, "within the number");
        assert_eq!(start_words(&[]), None);
    }

    #[test]
    fn a_number_of_arguments_that_is_a_lie_costs_nothing() {
        for number in [-1, i32::MIN, i32::MAX] {
            assert_eq!(start_words(&said(number, "/bin/a", &["a", "A=1"])), None, "{number}");
        }
        let bytes = said(9, "/bin/a", &["a", "A=1"]);
        let found = start_words(&bytes).expect("short");
        assert_eq!((texts(&found.arguments), found.environment.len()), (vec!["a".into(), "A=1".into()], 0));
        let none = said(0, "/bin/a", &["A=1"]);
        assert_eq!(texts(&start_words(&none).expect("no argument").environment), ["A=1"]);
        assert_eq!(start_words(&said(1, "/bin/a", &[])).expect("a path alone").arguments.len(), 0);
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_are_the_words_are_parts_of_them(
            number in -3i32..9,
            tail in proptest::collection::vec(prop_oneof![Just(0u8), Just(b'='), any::<u8>()], 0..200),
        ) {
            let bytes = [number.to_ne_bytes().as_slice(), tail.as_slice()].concat();
            if let Some(found) = start_words(&bytes) {
                let all = found.arguments.iter().chain(&found.environment);
                prop_assert!(all.map(|word| word.len() + 1).sum::<usize>() <= bytes.len());
                prop_assert!(found.arguments.len() <= usize::try_from(number).expect("not negative"));
                prop_assert!(found.environment.iter().all(|word| !word.is_empty() && !word.contains(&0)));
            }
        }
    }
}
