//! What must hold of every parser that reads what others wrote, whatever the bytes: it never panics, what it gives back
//! is bounded by what it was given, and what it refuses it refuses in words that no terminal acts on, naming the place.
//! The gate replays the corpus and random bytes through these; the fuzz targets go on from there.

use serde_json::Value;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use tasuki::agents::actions::{TESTS, actions};
use tasuki::agents::{Profile, ProfileError, Profiles, has_read, read_event, read_facts, transcript};
use tasuki::core::hook::HookEvent;
use tasuki::core::request::{KINDS, read};
use tasuki::core::text::sanitise;
use tasuki::tmux::protocol::{ProtocolEvent, ProtocolParser};

/// The longest message and field name that an answer may hold, in bytes.
const MAX_MESSAGE: usize = 2048;
const MAX_FIELD: usize = 512;

/// A text that is shown to people: nothing in it drives a terminal, and it is no book.
fn is_plain(what: &str, text: &str, max: usize) {
    assert_eq!(sanitise(text), text, "{what} holds what a terminal would act on");
    assert!(text.len() <= max, "{what} has {} bytes", text.len());
}

/// Request files.
pub(crate) fn request(bytes: &[u8]) {
    let read = read(bytes);
    is_plain("the kind", read.kind.as_deref().unwrap_or_default(), MAX_FIELD);
    assert!(read.request.is_err() || read.kind.as_deref().is_some_and(|kind| KINDS.contains(&kind)));
    let whole = serde_json::from_slice::<Value>(bytes).is_ok_and(|value| value.is_object());
    let Err(refused) = read.request else {
        assert!(whole && read.kind.is_some(), "only one whole object asks for anything");
        return;
    };
    assert!([400, 413, 422, 501].contains(&refused.status), "{}", refused.status);
    assert!(!refused.code.is_empty() && !refused.message.is_empty());
    is_plain("the message", &refused.message, MAX_MESSAGE);
    is_plain("the hint", refused.hint.as_deref().unwrap_or_default(), MAX_MESSAGE);
    is_plain("the field", refused.field.as_deref().unwrap_or_default(), MAX_FIELD);
    if refused.status == 400 {
        assert!(refused.field.is_some() || refused.line.is_some(), "no field and no place: {refused:?}");
    }
}

fn profiles() -> &'static Profiles {
    static PROFILES: OnceLock<Profiles> = OnceLock::new();
    PROFILES.get_or_init(|| Profiles::load(None).expect("built in"))
}

/// Event files.
pub(crate) fn event(bytes: &[u8]) {
    match read_event(bytes, profiles()) {
        Ok(event) => taken(&event, bytes.len()),
        Err(error) => {
            assert!(!error.code.is_empty() && !error.message.is_empty());
            is_plain("the message", &error.message, MAX_MESSAGE);
            is_plain("the field", error.field.as_deref().unwrap_or_default(), MAX_FIELD);
            assert!(error.field.is_some() || error.code == "bad_json", "no field: {error:?}");
        }
    }
}

fn taken(event: &HookEvent, given: usize) {
    // The wrapper of a prompt is taken off, never added; JSON is never shorter than the text that it holds.
    for text in [&event.text, &event.last_text].into_iter().flatten() {
        is_plain("a text", text, given.max(64));
    }
    for id in [&event.session_id, &event.turn_id, &event.profile].into_iter().flatten() {
        is_plain("an id", id, 4 * 200);
        assert!(!id.contains(['\n', '\t']), "an id is one line");
    }
    for path in [&event.transcript_path, &event.cwd].into_iter().flatten() {
        is_plain("a path", path, 4 * 4096);
        assert!(!path.contains(['\n', '\t']), "a path is one line");
    }
    is_plain("the message", event.message.as_deref().unwrap_or_default(), 4 * 500);
    assert!(event.ancestors.len() <= 8);
}

/// The control-mode protocol: however the bytes are cut, the same events come out.
pub(crate) fn control(bytes: &[u8]) {
    let (cut, bytes) = bytes.split_first().map_or((7, bytes), |(first, rest)| (usize::from(*first).max(1), rest));
    let at_once = parse(std::iter::once(bytes));
    let in_pieces = parse(bytes.chunks(cut));
    assert_eq!(at_once, in_pieces, "cut after every {cut} bytes");
    let sum: usize = at_once.0.iter().map(size).sum();
    // What is not UTF-8 grows to three bytes when it is made text.
    assert!(sum <= 3 * bytes.len(), "{sum} bytes came out of {}", bytes.len());
    let blocks: Vec<u64> = at_once.0.iter().filter_map(number).collect();
    assert!(blocks.windows(2).all(|pair| pair[0] < pair[1]), "answers come in order: {blocks:?}");
}

fn parse<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<ProtocolEvent>, bool) {
    let (mut parser, mut events) = (ProtocolParser::default(), Vec::new());
    for piece in pieces {
        if parser.push(piece, &mut events).is_err() {
            return (events, false);
        }
    }
    (events, true)
}

fn size(event: &ProtocolEvent) -> usize {
    match event {
        ProtocolEvent::Block(block) => block.lines.iter().map(Vec::len).sum(),
        ProtocolEvent::Notice { name, args } => name.len() + args.len(),
        ProtocolEvent::Stray(text) | ProtocolEvent::Exit { reason: text } => text.len(),
    }
}

fn number(event: &ProtocolEvent) -> Option<u64> {
    match event {
        ProtocolEvent::Block(block) => Some(block.number),
        _ => None,
    }
}

/// Profiles.
pub(crate) fn profile(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Profile::parse("fuzzed", Path::new("fuzzed.toml"), text) {
        Ok(profile) => {
            for command in [Some(profile.exit_command()), profile.new_command()].into_iter().flatten() {
                is_plain("a command", command, 4 * 200);
                assert!(!command.is_empty() && !command.contains('\n'), "a command is one line");
            }
            let _ = (profile.facts(), profile.detects(&["node".to_owned(), "x".to_owned()]));
            let _ = profile.unwrap_prompt("<a>text</a>");
        }
        Err(ProfileError::Wrong { line, key, message, .. }) => {
            assert!(line >= 1 && line <= text.lines().count().max(1) + 1, "line {line}");
            assert!(!key.is_empty());
            is_plain("the key", &key, MAX_FIELD);
            is_plain("the message", &message, MAX_MESSAGE);
        }
        Err(other) => panic!("not about a file: {other}"),
    }
}

/// Transcripts, read by the rules of each profile that has some.
pub(crate) fn transcript(bytes: &[u8]) {
    static FILE: OnceLock<Mutex<tempfile::NamedTempFile>> = OnceLock::new();
    let file = FILE.get_or_init(|| Mutex::new(tempfile::NamedTempFile::new().expect("a file")));
    let mut file = file.lock().expect("nobody panicked with it");
    let written = file.as_file().set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
    written.and_then(|_| file.write_all(bytes)).expect("written");
    for profile in profiles().iter().filter(|profile| profile.file.transcript.is_some()) {
        let told = transcript::read(profile, file.path()).expect("a plain file is read");
        assert!(told.said.len() as u64 <= told.messages, "texts without messages");
        let sum: usize = told.said.iter().map(|said| said.text.len()).sum();
        assert!(sum <= bytes.len(), "{sum} bytes came out of {}", bytes.len());
        for most in [0, 100, 4096] {
            let salvage = told.salvage(most);
            assert_eq!(sanitise(&salvage), salvage);
            assert!(salvage.len() <= most, "{} bytes, at most {most} were asked for", salvage.len());
        }
        let usage = transcript::read_context_usage(profile, file.path()).expect("a plain file is read");
        // The context usage alone is read from the last 1 MiB only.
        assert!(bytes.len() > 1 << 20 || usage.map(|(usage, _)| usage) == told.context);
        facts(profile, file.path(), &told);
    }
}

/// What a transcript shows of the agent's work.
fn facts(profile: &Profile, path: &Path, told: &transcript::Transcript) {
    let found = read_facts(profile, path).expect("a plain file is read");
    assert!(found.cut || (found.messages, found.context) == (told.messages, told.context));
    let requests = found.last.iter().chain(&found.first);
    requests.for_each(|request| is_plain("a request", request, 4096));
    assert!(found.last.len() <= 5 && found.cut == told.cut);
    let calls = found.calls.unwrap_or_default();
    assert!(calls.len() <= 2_000 && calls.iter().all(|call| !call.target.is_empty()));
    let done = actions(&calls, &TESTS);
    assert!(done.files.len() <= 100 && done.commands.len() <= 20 && done.sent.len() <= 10);
    for command in done.commands.iter().chain(&done.sent).chain(&done.last_test) {
        assert!(!command.command.contains('\n') && command.command.chars().count() <= 500);
        is_plain("a command", &command.command, 2_000);
        is_plain("its output", command.printed.as_deref().unwrap_or_default(), 2_000);
    }
    done.files.iter().for_each(|file| is_plain("a path", &file.path, 4_096));
    has_read(profile, path, Path::new("/h/x.md")).expect("a plain file is read");
}
