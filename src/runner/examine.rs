//! Looks at an agent's work, writes the facts beside the document, and checks the document against them. All of this is
//! best effort: if something can't be found out, the facts say so, and nothing fails.

use super::environment::{environment_of, known_values};
use super::{Tools, document, fault};
use crate::agents::profile::Profile;
use crate::agents::{self, actions};
use crate::config::Home;
use crate::contract::document::DocumentCheck;
use crate::contract::facts::{ActionFacts, ConversationFacts, RepositoryFacts, UserFacts};
use crate::contract::{self, DocumentFault, Facts};
use crate::core::check::{self, CheckInput, FoundSecret, Lookups};
use crate::core::effect::{DocumentRead, Drift, EnvironmentSearch, Examination, ExaminePlan, Outcome};
use crate::core::id::Slug;
use crate::files::Grade;
use crate::git::Git;
use crate::process::{self, READS_ENVIRONMENTS};
use crate::secrets::{self, Credential, Known};
use crate::spool::documents;
use chrono::{SecondsFormat, Utc};
use regex::Regex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long tasuki may take to read the transcript and to look at the files that it names. One of them may be on a disk
/// that hangs.
const ACTIONS_WITHIN: Duration = Duration::from_secs(10);
/// How long tasuki looks at the repository again before the briefing, whatever `facts.timeout` allows: the look takes
/// its time from the limit of the step `briefing`, and a briefing that was not typed in time would fail the handoff.
const DRIFT_WITHIN: Duration = Duration::from_secs(15);
/// How many threads may do that at once. A thread that hangs keeps its place until its disk answers.
static THREADS: Semaphore = Semaphore::const_new(8);

/// Examines the document, if it still has the hash that the plan names.
pub(super) async fn examine(tools: &Tools, plan: &ExaminePlan) -> Outcome {
    let mut looked = look(tools, plan).await;
    let with = Arc::new(Blocking {
        home: tools.home.clone(),
        allow: tools.allow.clone(),
        profile: tools.profiles.get(&plan.profile).filter(|_| tools.facts.transcript).cloned(),
        tests: tools.facts.tests.clone(),
    });
    let plan = Arc::new(plan.clone());
    actions(&with, &plan, &mut looked.facts).await;
    let held = fault::blocking(move || check_against(&with, &plan, looked)).await;
    held.unwrap_or_else(|error| Outcome::Failed { why: error.to_string() })
}

/// The tools that the blocking part needs.
struct Blocking {
    home: Home,
    allow: Vec<String>,
    profile: Option<Profile>,
    tests: Vec<String>,
}

/// Adds the transcript's facts, if they can be read in time.
async fn actions(with: &Arc<Blocking>, plan: &Arc<ExaminePlan>, facts: &mut Facts) {
    let (with, plan) = (Arc::clone(with), Arc::clone(plan));
    let mut seen = Facts { repository: facts.repository.clone(), ..Facts::default() };
    let reading = async {
        let room = THREADS.acquire().await.ok()?;
        let read = fault::blocking(move || {
            transcript(with.profile.as_ref(), &with.tests, &plan, &mut seen);
            drop(room);
            seen
        });
        read.await.ok()
    };
    let what = "the agent's transcript, and the files that it names, could not be read";
    let seen = match timeout(ACTIONS_WITHIN, reading).await {
        Ok(Some(seen)) => seen,
        Ok(None) => return facts.not_known.push(format!("{what}: tasuki made an error, which its log names")),
        Err(_) => return facts.not_known.push(format!("{what} within {} s", ACTIONS_WITHIN.as_secs())),
    };
    (facts.conversation, facts.user, facts.actions) = (seen.conversation, seen.user, seen.actions);
    facts.not_known.extend(seen.not_known);
}

/// The document, the facts of its author's work, and git's answers about the commits, branches and paths that the
/// document names.
struct Looked {
    document: DocumentRead,
    facts: Facts,
    lookups: Lookups,
}

/// Reads the document, and looks at the work of its author.
async fn look(tools: &Tools, plan: &ExaminePlan) -> Looked {
    let (home, persona, file_name) = (tools.home.clone(), plan.persona.clone(), plan.file_name.clone());
    let read = fault::blocking(move || document::read_once(&home, &persona, &file_name)).await;
    let document = read.unwrap_or_else(|error| DocumentRead::Unsafe { why: error.to_string() });
    let mut facts = Facts {
        v: 1,
        handoff_id: plan.handoff_id.to_string(),
        agent_id: plan.agent_id.to_string(),
        taken_at: Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
        chain: plan.chain.clone(),
        ..Facts::default()
    };
    let text = match &document {
        DocumentRead::Whole { text, sha256 } if *sha256 == plan.sha256 => text,
        _ => return Looked { document, facts, lookups: Lookups::default() },
    };
    let lookups = repository(tools, plan, text, &mut facts).await;
    if let Some(process) = plan.process {
        let below = move || process::is_alive(&process).then(|| process::below(process.pid)).flatten();
        facts.running = fault::blocking(below).await.ok().flatten();
    }
    Looked { document, facts, lookups }
}

/// Adds the state of the repository to the facts, and returns git's answers about what the document names in it.
async fn repository(tools: &Tools, plan: &ExaminePlan, text: &str, facts: &mut Facts) -> Lookups {
    let (Some(cwd), true) = (&plan.cwd, tools.facts.git) else { return Lookups::default() };
    let (git, cwd) = (git(tools), Path::new(cwd));
    facts.repository = git.facts(cwd, plan.since.as_deref(), &mut facts.not_known).await;
    if facts.repository.is_none() {
        return Lookups::default();
    }
    git.lookups(cwd, &check::claims(text, plan.cwd.as_deref())).await
}

pub(super) fn git(tools: &Tools) -> Git {
    Git { program: "git".to_owned(), limit: tools.facts.timeout }
}

/// Adds to the facts what the transcript says about the session and the agent's actions.
fn transcript(profile: Option<&Profile>, tests: &[String], plan: &ExaminePlan, facts: &mut Facts) {
    let Some(profile) = profile.filter(|profile| profile.file.transcript.is_some()) else { return };
    let session_id = plan.session_id.clone();
    let resume_command = session_id.as_deref().and_then(|id| profile.resume_command(id));
    let session = ConversationFacts {
        session_id,
        resume_command,
        transcript_path: plan.transcript.clone(),
        context_percent: plan.context_percent,
        ..ConversationFacts::default()
    };
    let Some(path) = &plan.transcript else {
        facts.conversation = Some(session);
        return facts.not_known.push("the agent has reported no transcript".to_owned());
    };
    match agents::read_facts(profile, Path::new(path)) {
        Ok(read) => {
            let seen = read.conversation();
            let context_percent = seen.context_percent.or(session.context_percent);
            let (session_id, resume_command) = (session.session_id, session.resume_command);
            let transcript_path = session.transcript_path;
            facts.conversation =
                Some(ConversationFacts { session_id, resume_command, transcript_path, context_percent, ..seen });
            facts.user = Some(read.user());
            let acted = read.calls.as_deref().map(|calls| match tests.is_empty() {
                true => actions::actions(calls, &actions::TESTS),
                false => actions::actions(calls, tests),
            });
            facts.actions = acted.map(|actions| with_states(actions, plan, facts));
        }
        Err(error) => {
            facts.conversation = Some(session);
            facts.not_known.push(error.to_string());
        }
    }
}

/// Says of each file that the agent wrote whether it is there, and whether it differs from HEAD.
fn with_states(mut actions: ActionFacts, plan: &ExaminePlan, facts: &Facts) -> ActionFacts {
    let cwd = plan.cwd.as_deref().map(Path::new);
    let changed: BTreeSet<PathBuf> = facts
        .repository
        .iter()
        .flat_map(|repository| {
            let root = Path::new(&repository.root);
            repository.status.iter().map(move |file| root.join(&file.path))
        })
        .collect();
    for file in &mut actions.files {
        let path = cwd.map_or_else(|| PathBuf::from(&file.path), |cwd| cwd.join(&file.path));
        let is_there = std::fs::symlink_metadata(&path).is_ok();
        let state = if !is_there {
            "gone"
        } else if changed.contains(&path) {
            "differs"
        } else {
            "exists"
        };
        state.clone_into(&mut file.state);
    }
    actions
}

/// Takes credentials out of the facts, writes the facts beside the document, and finds the document's faults. It
/// searches texts of several megabytes, so it has a thread of its own.
fn check_against(with: &Blocking, plan: &ExaminePlan, looked: Looked) -> Outcome {
    let Blocking { home, allow, .. } = with;
    let Looked { document, mut facts, lookups } = looked;
    let is_same = matches!(&document, DocumentRead::Whole { sha256, .. } if *sha256 == plan.sha256);
    let DocumentRead::Whole { text, .. } = &document else { return changed(document) };
    if !is_same {
        return changed(document);
    }
    let is_lost = plan.process.as_ref().and_then(environment_of).is_none();
    if is_lost {
        let why = "the agent's environment could not be read: the document was not searched for the values in it";
        facts.not_known.push(why.to_owned());
    }
    let all_values = known_values(plan.process.as_ref());
    let environment = secrets::without_words(all_values.clone());
    let allowed: Vec<Regex> = allow.iter().filter_map(|expression| Regex::new(expression).ok()).collect();
    let known = Known { environment: &environment, allowed: &allowed };
    let predecessor = predecessor(home, plan, &mut facts);
    without_credentials(&mut facts, &known);
    write_beside(home, plan, &mut facts);
    let found = secrets::find(text, &known);
    let is_value = |found: &Credential| found.kind.starts_with(secrets::ENVIRONMENT);
    // A value may be an ordinary word or number, such as `postgres`. In a document that stays on this machine, tasuki
    // leaves such a value. If the document is published, the value counts as a credential, so `environment` must say
    // `Found`.
    let holds_word = || secrets::find(text, &Known { environment: &all_values, ..known }).iter().any(is_value);
    let holds_values = found.iter().any(is_value) || (all_values.len() > environment.len() && holds_word());
    // On a system where tasuki can't read environments at all, only the facts say that the values were not searched
    // for. Otherwise no briefing there would ever show a document.
    let environment = match (is_lost && READS_ENVIRONMENTS, holds_values) {
        (true, _) => EnvironmentSearch::NotDone,
        (false, false) => EnvironmentSearch::Clean,
        (false, true) => EnvironmentSearch::Found,
    };
    let redacted = (!found.is_empty()).then(|| secrets::without(text, &known));
    let secrets: Vec<FoundSecret> =
        found.into_iter().map(|found| FoundSecret { kind: found.kind, line: found.line, last: found.last }).collect();
    let folder = home.personas().join(plan.persona.as_str()).join("handoffs");
    let document_path = folder.join(&plan.file_name).display().to_string();
    let faults = match plan.rules.check {
        DocumentCheck::Off => Vec::new(),
        DocumentCheck::Warn | DocumentCheck::Fix | DocumentCheck::Hold => check::faults(&CheckInput {
            text,
            author: plan.author,
            cwd: plan.cwd.as_deref(),
            document_path: Some(&document_path),
            is_urgent: plan.is_urgent,
            facts: &facts,
            lookups: &lookups,
            predecessor: predecessor.as_deref(),
            instruction: &plan.instruction,
            secrets: &secrets,
            min_chars: plan.rules.min_chars,
            max_bytes: plan.rules.max_bytes,
        }),
    };
    let faults = faults.into_iter().map(|fault| without_credential(fault, &known)).collect();
    let facts = Box::new(facts);
    Outcome::Examined(Box::new(Examination { document, facts, faults, redacted, environment }))
}

/// The outcome if the document's text is no longer the expected one. The core then reads the document again, or refuses
/// it if it is an update.
fn changed(document: DocumentRead) -> Outcome {
    let (facts, faults) = (Box::default(), Vec::new());
    Outcome::Examined(Box::new(Examination {
        document,
        facts,
        faults,
        redacted: None,
        environment: EnvironmentSearch::NotDone,
    }))
}

/// The document of the agent's predecessor. Also adds the rules of the whole chain to the facts.
fn predecessor(home: &Home, plan: &ExaminePlan, facts: &mut Facts) -> Option<String> {
    let path = Path::new(&plan.chain.earlier.last()?.file_path);
    let name = path.file_name()?.to_str()?;
    let DocumentRead::Whole { text, .. } = document::read_once(home, &plan.persona, name) else {
        facts.not_known.push("the document of the agent's predecessor can't be read".to_owned());
        return None;
    };
    let stem = name.strip_suffix(".md").unwrap_or(name);
    let earlier = match document::read_once(home, &plan.persona, &format!("{stem}.facts.json")) {
        DocumentRead::Whole { text, .. } => contract::read::<Facts>(text.as_bytes()).ok().flatten(),
        DocumentRead::Missing | DocumentRead::Empty | DocumentRead::Unsafe { .. } => None,
    };
    let rules = earlier.map(|facts| facts.chain.rules).unwrap_or_default();
    facts.chain.rules = check::handed_down_rules(&rules, &text);
    Some(text)
}

/// Takes credentials out of everything that others have written into the facts.
fn without_credentials(facts: &mut Facts, known: &Known<'_>) {
    let clean = |text: &mut String| *text = secrets::without(text, known);
    if let Some(UserFacts { first, last }) = &mut facts.user {
        first.iter_mut().chain(last).for_each(clean);
    }
    if let Some(ActionFacts { commands, last_test, sent, files }) = &mut facts.actions {
        for ran in commands.iter_mut().chain(last_test).chain(sent) {
            clean(&mut ran.command);
            ran.printed.iter_mut().for_each(clean);
        }
        files.iter_mut().for_each(|file| clean(&mut file.path));
    }
    if let Some(repository) = &mut facts.repository {
        let RepositoryFacts { subject, remote, branch, upstream, .. } = repository;
        subject.iter_mut().chain(remote).chain(branch).chain(upstream).for_each(clean);
        repository.commits.iter_mut().for_each(|commit| clean(&mut commit.subject));
        repository.status.iter_mut().for_each(|file| clean(&mut file.path));
    }
    facts.not_known.iter_mut().for_each(clean);
    facts.running.iter_mut().flatten().for_each(|process| clean(&mut process.command));
    facts.chain.rules.iter_mut().for_each(clean);
    facts.chain.earlier.iter_mut().filter_map(|earlier| earlier.checkpoint.as_mut()).for_each(clean);
}

/// Takes credentials out of a fault, which may quote the document.
fn without_credential(fault: DocumentFault, known: &Known<'_>) -> DocumentFault {
    DocumentFault { said: secrets::without(&fault.said, known), is: secrets::without(&fault.is, known), ..fault }
}

/// Writes the facts beside the document, as JSON and, for the successor, as Markdown.
fn write_beside(home: &Home, plan: &ExaminePlan, facts: &mut Facts) {
    let stem = plan.file_name.strip_suffix(".md").unwrap_or(&plan.file_name);
    let written =
        documents::open_folder(home.root(), &plan.persona).map_err(|error| error.to_string()).and_then(|folder| {
            let json = contract::text(facts);
            let write = |ending: &str, text: &str| {
                folder
                    .replace(&format!("{stem}.facts.{ending}"), text, Grade::Durable)
                    .map_err(|error| error.to_string())
            };
            write("json", &json)?;
            write("md", &check::markdown(facts))
        });
    if let Err(why) = written {
        tracing::warn!(why, "could not write the facts beside a document");
        facts.not_known.push("these facts could not be written beside the document".to_owned());
    }
}

/// Compares the document with its record, and the repository with the facts that were taken for that document.
pub(super) async fn compare(
    tools: &Tools,
    (persona, file_name, record): (&Slug, &str, (&str, Option<&str>)),
    drift: Option<&Drift>,
    stop: &CancellationToken,
) -> Outcome {
    let compared = document::compare(&tools.home, persona, file_name, record, stop).await;
    let (Outcome::Compared { document, .. }, Some(drift)) = (&compared, drift.filter(|_| tools.facts.git)) else {
        return compared;
    };
    let drift = changed_since(&git(tools), drift, DRIFT_WITHIN).await;
    Outcome::Compared { document: *document, drift }
}

/// What has changed in the repository since the facts were taken; nothing if git does not tell in time.
pub(super) async fn changed_since(git: &Git, before: &Drift, within: Duration) -> Vec<String> {
    let mut not_known = Vec::new();
    let look = git.facts(Path::new(&before.cwd), None, &mut not_known);
    let Ok(now) = timeout(within, look).await else { return Vec::new() };
    let git_answered = now.is_some() || not_known.is_empty();
    let drift = if git_answered { check::drift(&before.repository, now.as_ref()) } else { Vec::new() };
    drift.iter().map(|said| secrets::without(said, &Known::default())).collect()
}
