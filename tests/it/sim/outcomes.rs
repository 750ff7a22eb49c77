//! Every way in which an effect can end, for worlds in which nothing is modelled but that.

use super::rng::Rng;
use tasuki::contract::document::FaultGrade;
use tasuki::contract::{DocumentFault, LimitKind};
use tasuki::core::effect::{
    AutoHandoffCheck, ComparedDocument, Composed, DocumentRead, Effect, EnvironmentSearch, Examination, ExaminePlan,
    LimitFound, Measured, Outcome, PersonaTexts, Posted, PublishFault, Readiness, Started, SuccessorWindow,
};
use tasuki::core::hook::ContextUsage;
use tasuki::core::pane::{PaneFacts, PaneRef, Process, Refusal, ServerId, Typed};
use tasuki::core::persona::PersonaFacts;

/// When a simulated life begins; wall clock, in milliseconds since 1970.
const START_MS: i64 = 1_790_000_000_000;

const REFUSALS: [Refusal; 17] = [
    Refusal::PaneGone,
    Refusal::PaneChanged,
    Refusal::PaneDead,
    Refusal::PaneClaimed,
    Refusal::AgentEnded,
    Refusal::BareShell,
    Refusal::Dialog,
    Refusal::Draft,
    Refusal::Busy,
    Refusal::NotReady,
    Refusal::InputOff,
    Refusal::CopyMode,
    Refusal::CookedMode,
    Refusal::NoTmux,
    Refusal::HooksUnseen,
    Refusal::BadText,
    Refusal::TextFile,
];

/// Whether it waits for others, who may never do what it waits for. The step that it belongs to has a limit of its own.
pub(super) fn may_be_endless(effect: &Effect) -> bool {
    match effect {
        Effect::AwaitIdle { brief, .. } => !brief,
        Effect::AwaitDeath { .. }
        | Effect::AwaitReady { .. }
        | Effect::AwaitPrompt { .. }
        | Effect::AwaitRead { .. }
        | Effect::Type(_) => true,
        _ => false,
    }
}

/// One of the ways in which it can end, and its name.
pub(super) fn any(effect: &Effect, rng: &mut Rng) -> (String, Outcome) {
    let mut ways = ways(effect, rng);
    let way = rng.below(ways.len() as u64) as usize;
    let outcome = ways.swap_remove(way);
    (format!("{} {way}", effect.kind()), outcome)
}

fn looks() -> Vec<Outcome> {
    let screen = "what it shows".to_owned();
    let ends = [
        Readiness::Ready,
        Readiness::Blocked { screen: screen.clone() },
        Readiness::NotReady { screen: screen.clone() },
        Readiness::AtWork { screen: screen.clone() },
        Readiness::Gone { screen },
    ];
    ends.map(Outcome::Readiness).into()
}

fn ways(effect: &Effect, rng: &mut Rng) -> Vec<Outcome> {
    let failed = || Outcome::Failed { why: "why".to_owned() };
    match effect {
        Effect::Type(_) => vec![
            Outcome::Typed(Typed::Submitted { proven: false }),
            Outcome::Typed(Typed::Submitted { proven: true }),
            Outcome::Typed(Typed::Refused { reason: REFUSALS[rng.below(REFUSALS.len() as u64) as usize] }),
            Outcome::Typed(Typed::Unknown { reason: "not_seen".to_owned() }),
        ],
        Effect::Start(_) => starts(rng),
        Effect::AwaitReady { .. } | Effect::AwaitIdle { .. } | Effect::LookAtTurn { .. } => looks(),
        Effect::ReadDocument { .. } => {
            let whole = DocumentRead::Whole { text: "# Work".to_owned(), sha256: "0".repeat(64) };
            let unsafe_one = DocumentRead::Unsafe { why: "a link".to_owned() };
            [DocumentRead::Missing, DocumentRead::Empty, unsafe_one, whole].map(Outcome::Document).into()
        }
        Effect::ComposeDocument { .. } => {
            let no = Composed::Failed { why: "no space".to_owned() };
            [Composed::Written, Composed::Nothing, no].map(Outcome::Composed).into()
        }
        Effect::Examine(plan) => examinations(plan),
        Effect::CompareDocument { .. } => {
            let compared = |document| Outcome::Compared { document, drift: Vec::new() };
            let documents = [ComparedDocument::Same, ComparedDocument::Changed, ComparedDocument::Restored];
            documents.map(compared).into_iter().chain([failed()]).collect()
        }
        Effect::ReadPersona { .. } => {
            let texts = PersonaTexts { skill: "# Skill".to_owned(), experience: None };
            vec![Outcome::Persona(Some(texts)), Outcome::Persona(None), failed()]
        }
        Effect::HoldPlaceholder { .. } => {
            let place = SuccessorWindow { session: "work".to_owned(), session_number: None, size: (80, 24), cwd: None };
            vec![Outcome::Placeholder(Some(place)), Outcome::Placeholder(None), failed()]
        }
        Effect::Identify { pane, .. } => vec![Outcome::Pane(None), Outcome::Pane(Some(seen(*pane, rng))), failed()],
        Effect::ReadContextUsage { .. } => {
            let usage = ContextUsage { used: rng.below(110), window: Some(100) };
            vec![Outcome::ContextUsage(None), Outcome::ContextUsage(Some(Measured { usage, guessed: false })), failed()]
        }
        Effect::ReadLimit { .. } => vec![Outcome::Limit(None), Outcome::Limit(Some(limit(rng))), failed()],
        Effect::CheckAutoHandoff { .. } => vec![auto_handoff(rng), failed()],
        Effect::KeepCopy(_) => vec![Outcome::Copied { file_name: "a.md".to_owned(), redacted_sha256: None }, failed()],
        Effect::Publish(_) => posts(rng),
        Effect::PrepareFolder { .. }
        | Effect::AwaitDeath { .. }
        | Effect::DropPlaceholder { .. }
        | Effect::KillPane { .. }
        | Effect::AwaitPrompt { .. }
        | Effect::AwaitRead { .. }
        | Effect::NotifyOperator(_)
        | Effect::Notify(_) => vec![Outcome::Done, failed()],
    }
}

/// A limit whose end, if it is known, may be past, near or far.
pub(super) fn limit(rng: &mut Rng) -> LimitFound {
    let kinds = LimitKind::ALL;
    let kind = kinds[usize::try_from(rng.below(kinds.len() as u64)).expect("small")];
    let until_ms = rng.chance(70).then(|| START_MS + i64::try_from(rng.below(4 * 3_600_000)).expect("small"));
    LimitFound { kind, until_ms, said: "used up".to_owned(), on_screen: rng.chance(20) }
}

fn auto_handoff(rng: &mut Rng) -> Outcome {
    let persona = PersonaFacts { exists: true, has_skill: true, ..PersonaFacts::default() };
    Outcome::AutoHandoffCheck(Box::new(AutoHandoffCheck::new(Some(rng.below(2)), persona)))
}

/// The document as it was, with or without a fault; another one; none.
fn examinations(plan: &ExaminePlan) -> Vec<Outcome> {
    let fix = DocumentFault { grade: FaultGrade::Fix.into(), ..DocumentFault::default() };
    let whole = |sha256: &str| DocumentRead::Whole { text: "# Work".to_owned(), sha256: sha256.to_owned() };
    let examined = |document: DocumentRead, faults: Vec<DocumentFault>| {
        Outcome::Examined(Box::new(Examination {
            document,
            facts: Box::default(),
            faults,
            redacted: None,
            environment: EnvironmentSearch::Clean,
        }))
    };
    vec![
        examined(whole(&plan.sha256), Vec::new()),
        examined(whole(&plan.sha256), vec![fix]),
        examined(whole("another"), Vec::new()),
        examined(DocumentRead::Missing, Vec::new()),
        Outcome::Failed { why: "why".to_owned() },
    ]
}

fn starts(rng: &mut Rng) -> Vec<Outcome> {
    let why = "why".to_owned();
    let number = 500 + u32::try_from(rng.below(1_000_000)).expect("it fits");
    let pane = PaneRef { server: ServerId { pid: 100, start_time: 1 }, pane: number, pid: number };
    let process = Some(Process { pid: number, start_ticks: 1 }).filter(|_| rng.chance(80));
    let ends = [
        Started::Running { pane, process },
        Started::Died,
        Started::Failed { why: why.clone() },
        Started::NoTmux,
        Started::Unknown { why },
    ];
    ends.map(Outcome::Started).into()
}

fn seen(pane: u32, rng: &mut Rng) -> PaneFacts {
    PaneFacts {
        pane: PaneRef { server: ServerId { pid: 100, start_time: 1 }, pane, pid: 1000 + pane },
        session_name: "work".to_owned(),
        cwd: "/".to_owned(),
        agent: Some(Process { pid: 1000 + pane, start_ticks: 1 }).filter(|_| rng.chance(80)),
        bare_shell: rng.chance(10),
        profile: Some("demo".to_owned()),
        agent_id: None,
        claimed_by: rng.chance(10).then(|| "another".to_owned()),
    }
}

fn posts(rng: &mut Rng) -> Vec<Outcome> {
    let fault = PublishFault {
        code: "gh_failed".to_owned(),
        message: String::new(),
        maybe_stored: rng.chance(50),
        is_retryable: rng.chance(50),
        refused: rng.chance(20),
    };
    let ends = [Posted::Done { url: None, is_public: true }, Posted::NotThere, Posted::Failed(fault)];
    ends.map(Outcome::Posted).into()
}
