//! `hooks`: puts a profile's hooks into the CLI's own configuration, so that agents that people start themselves report
//! their events, and removes them again.

use super::CliSession;
use super::diff;
use super::error::CliError;
use super::output::Tone;
use crate::agents::install::{Change, Context, InstallError, PlannedFile, Way};
use crate::agents::{Profile, Profiles};
use crate::clock::Clock;
use crate::core::text::sanitise;
use crate::files;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;

/// `hooks …`.
#[derive(Debug, Subcommand)]
pub enum HooksCommand {
    /// Add tasuki's hooks to an agent CLI's own configuration, without changing its other settings.
    #[command(after_help = "Example:\n  tasuki hooks install claude --dry-run\n  tasuki hooks install claude")]
    Install(InstallArgs),
    /// Remove tasuki's hooks: the file is as it was before.
    #[command(after_help = "Example:\n  tasuki hooks uninstall claude")]
    Uninstall(InstallArgs),
    /// Print what `hooks install` would add, and to which file.
    #[command(after_help = "Example:\n  tasuki hooks show claude")]
    Show(ProfileName),
}

/// `hooks install`, `hooks uninstall`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The profile's name.
    pub profile: String,
    /// Show the change without making it.
    #[arg(long)]
    pub dry_run: bool,
}

/// One profile.
#[derive(Debug, Args)]
pub struct ProfileName {
    /// The profile's name.
    pub profile: String,
}

/// The change of one file: made, only planned, or not necessary.
struct Done {
    status: &'static str,
    file: String,
    /// The file that was changed, if `file` is a link to it.
    target: Option<String>,
    /// The path of a copy of the previous version.
    copy: Option<String>,
    /// With `--dry-run`: the difference that the change would make.
    diff: Option<String>,
    is_removed: bool,
}

/// Installs, uninstalls or shows a profile's hooks.
///
/// # Errors
/// When there is no such profile, one of the home's profiles is wrong, or the agent CLI's configuration can't be
/// changed. If other files were changed before that, they are printed.
pub fn command(session: &CliSession, command: &HooksCommand) -> Result<(), CliError> {
    match command {
        HooksCommand::Install(args) => change(session, args, Way::In),
        HooksCommand::Uninstall(args) => change(session, args, Way::Out),
        HooksCommand::Show(args) => show(session, args),
    }
}

fn load(session: &CliSession, name: &str) -> Result<Profile, CliError> {
    let profiles = Profiles::load(Some(&session.home.profiles()))?;
    profiles.get(name).cloned().ok_or_else(|| unknown(name, &profiles))
}

fn program() -> Result<PathBuf, CliError> {
    files::own_program().map_err(|error| {
        CliError::refused("program", format!("tasuki can't find the path of its own program: {error}."))
    })
}

fn change(session: &CliSession, args: &InstallArgs, way: Way) -> Result<(), CliError> {
    let profile = load(session, &args.profile)?;
    let program = program()?;
    let context = Context { program: &program, home: session.home.root(), env: &|name| std::env::var_os(name) };
    let planned = match way {
        Way::In => profile.plan_install(&context),
        Way::Out => profile.plan_uninstall(&context),
    };
    let planned = planned.map_err(|error| explained(error, &profile))?;
    let more = profile.plan_files(&context, way).map_err(|error| explained(error, &profile))?;
    let (done, failed) = carry_out_both(planned, more, way, args.dry_run);
    match failed {
        None => tell(session, args, &profile, way, &done),
        Some(error) if done.is_nothing() => Err(error),
        Some(error) => {
            tell(session, args, &profile, way, &done)?;
            let rest = "What is said above was done. Remove the cause, then run the command again: it does the rest.";
            let hint = error.hint.as_ref().map_or_else(|| rest.to_owned(), |hint| format!("{hint}\n  {rest}"));
            Err(error.hint(hint))
        }
    }
}

/// The change of the CLI's configuration and those of the files that are installed beside it, as far as they were
/// carried out.
#[derive(Default)]
struct AllDone {
    /// `None` if an earlier change failed.
    hooks: Option<Done>,
    files: Vec<Done>,
}

impl AllDone {
    /// Whether no file was touched.
    fn is_nothing(&self) -> bool {
        self.hooks.iter().chain(&self.files).all(|done| !matches!(done.status, "installed" | "uninstalled"))
    }
}

/// Carries out the changes until one fails. Installing changes the CLI's configuration first, uninstalling changes it
/// last: then a folder that was made for the configuration and the files is empty at the end, and can be removed.
fn carry_out_both(planned: Change, more: Vec<PlannedFile>, way: Way, dry: bool) -> (AllDone, Option<CliError>) {
    let mut done = AllDone::default();
    let mut hooks = Some(planned);
    let carried = || -> Result<(), CliError> {
        if way == Way::In {
            done.hooks = hooks.take().map(|planned| carry_out(planned, way, dry)).transpose()?;
        }
        for file in more {
            done.files.push(carry_out_file(file, way, dry)?);
        }
        if let Some(planned) = hooks.take() {
            done.hooks = Some(carry_out(planned, way, dry)?);
        }
        Ok(())
    };
    let failed = carried().err();
    (done, failed)
}

/// Prints what was done.
fn tell(session: &CliSession, args: &InstallArgs, profile: &Profile, way: Way, done: &AllDone) -> Result<(), CliError> {
    let note =
        (way == Way::In).then(|| profile.file.install.as_ref().and_then(|install| install.note.clone())).flatten();
    if session.out.is_json() {
        let mut answer = done.hooks.as_ref().map_or_else(|| json!({}), Done::json);
        answer["profile"] = args.profile.clone().into();
        answer["note"] = note.into();
        answer["files"] = done.files.iter().map(Done::json).collect();
        return session.out.document(&answer);
    }
    let title = sanitise(&profile.file.title);
    if let Some(hooks) = &done.hooks {
        hooks.tell(session, &sentence(hooks.status, &title, &hooks.file, hooks.is_removed))?;
    }
    for file in &done.files {
        file.tell(session, &file_sentence(file.status, &title, &file.file))?;
    }
    if let Some(note) = note.filter(|_| !args.dry_run) {
        session.out.note(&sanitise(&note));
    }
    Ok(())
}

fn carry_out(planned: Change, way: Way, dry: bool) -> Result<Done, CliError> {
    let nothing = planned.is_nothing();
    let (before, after) = planned.texts();
    let is_removed = after.is_none() && !nothing;
    let diff = dry.then(|| diff::unified(before.unwrap_or_default(), after.unwrap_or_default()));
    let file = sanitise(&planned.file().display().to_string());
    let target = planned.target().map(|target| sanitise(&target.display().to_string()));
    let copy = if dry { None } else { planned.apply(Clock::new().now().wall_ms)? };
    let copy = copy.map(|copy| copy.display().to_string());
    Ok(Done { status: status(way, nothing, dry), file, target, copy, diff, is_removed })
}

fn carry_out_file(planned: PlannedFile, way: Way, dry: bool) -> Result<Done, CliError> {
    if let Some(change) = planned.change {
        return carry_out(change, way, dry);
    }
    let file = sanitise(&planned.path.display().to_string());
    Ok(Done { status: "not_ours", file, target: None, copy: None, diff: dry.then(String::new), is_removed: false })
}

impl Done {
    fn json(&self) -> Value {
        let mut answer = json!({"status": self.status, "file": self.file, "target": self.target, "backup": self.copy});
        if let Some(diff) = &self.diff {
            answer["diff"] = diff.clone().into();
        }
        answer
    }

    fn tell(&self, session: &CliSession, sentence: &str) -> Result<(), CliError> {
        if let Some(diff) = self.diff.as_ref().filter(|diff| !diff.is_empty()) {
            session.out.raw(&painted(session, diff))?;
        }
        session.out.line(sentence)?;
        if let Some(target) = &self.target {
            session.out.note(&format!("{} is a link to {target}.", self.file));
        }
        if let Some(copy) = &self.copy {
            session.out.note(&format!("The previous version is kept in {}.", sanitise(copy)));
        }
        Ok(())
    }
}

fn status(way: Way, nothing: bool, dry: bool) -> &'static str {
    match (way, nothing, dry) {
        (Way::In, true, _) => "already_installed",
        (Way::Out, true, _) => "not_installed",
        (Way::In, false, true) => "would_install",
        (Way::Out, false, true) => "would_uninstall",
        (Way::In, false, false) => "installed",
        (Way::Out, false, false) => "uninstalled",
    }
}

fn sentence(status: &str, title: &str, file: &str, removed: bool) -> String {
    match status {
        "already_installed" => format!("{title}: the hooks are already in {file}; nothing was changed."),
        "not_installed" => format!("{title}: {file} has no hooks of tasuki; nothing was changed."),
        "would_install" => {
            format!("{title}: nothing was changed; without --dry-run, {file} would be changed like this.")
        }
        "would_uninstall" if removed => {
            format!("{title}: nothing was changed; without --dry-run, {file} would be removed.")
        }
        "would_uninstall" => {
            format!("{title}: nothing was changed; without --dry-run, {file} would be changed like this.")
        }
        "installed" => {
            format!("{title}: the hooks were added to {file}. Agents that you start from now on report their events.")
        }
        _ if removed => format!("{title}: {file} held only the hooks and was removed."),
        _ => format!("{title}: the hooks were removed from {file}."),
    }
}

/// The sentence about a file that is installed beside the CLI's configuration.
fn file_sentence(status: &str, title: &str, file: &str) -> String {
    match status {
        "not_ours" => format!("{title}: {file} is a file of your own, so it was left as it is."),
        "already_installed" => format!("{title}: {file} is already there; nothing was changed."),
        "not_installed" => format!("{title}: there is no {file}; nothing was changed."),
        "would_install" => format!("{title}: without --dry-run, {file} would be written."),
        "would_uninstall" => format!("{title}: without --dry-run, {file} would be removed."),
        "installed" => format!("{title}: {file} was written."),
        _ => format!("{title}: {file} was removed."),
    }
}

fn painted(session: &CliSession, diff: &str) -> String {
    let tone = |line: &str| match line.as_bytes().first() {
        Some(b'+') => Tone::Good,
        Some(b'-') => Tone::Bad,
        Some(b'@') => Tone::Faint,
        _ => Tone::Plain,
    };
    diff.lines().map(|line| session.out.paint(tone(line), &sanitise(line)) + "\n").collect()
}

/// Prints a profile's hooks: only the text on standard output, and the instructions on standard error.
fn show(session: &CliSession, ProfileName { profile: name }: &ProfileName) -> Result<(), CliError> {
    let profile = load(session, name)?;
    let program = program()?;
    let title = sanitise(&profile.file.title);
    let context = Context { program: &program, home: session.home.root(), env: &|name| std::env::var_os(name) };
    match profile.shown(&context)? {
        Some(shown) => {
            let file = sanitise(&shown.file.display().to_string());
            let how = if shown.is_whole { "this is the whole of" } else { "add this to" };
            session.out.note(&format!("For {title}: {how} {file}. `tasuki hooks install {name}` does that for you."));
            let files: Vec<(String, &String)> =
                shown.files.iter().map(|(file, text)| (sanitise(&file.display().to_string()), text)).collect();
            for (file, _) in &files {
                session.out.note(&format!("It also writes {file}; `--dry-run` shows it."));
            }
            let files: Value = files.iter().map(|(file, text)| json!({"file": file, "text": text})).collect();
            let answer =
                json!({"profile": name, "title": title, "file": file, "configuration": shown.text, "files": files});
            session.report(&answer, shown.text.trim_end())
        }
        None => {
            let answer = json!({"profile": name, "title": title, "file": null, "configuration": null});
            session.report(&answer, &format!("{title}: there is nothing to configure. {}", why_nothing(&profile)))
        }
    }
}

fn why_nothing(profile: &Profile) -> &'static str {
    match profile.file.launch {
        Some(_) => "tasuki passes the hooks on the command line of the agents that it starts.",
        None => "The profile does not say how its CLI reports events.",
    }
}

/// The error, with a hint that says what to do about it.
fn explained(error: InstallError, profile: &Profile) -> CliError {
    let hint = match &error {
        InstallError::NoInstall { .. } => Some(why_nothing(profile).to_owned()),
        InstallError::Wrong { .. } => {
            Some(format!("Fix the file, or add the hooks yourself: `tasuki hooks show {}` prints them.", profile.name))
        }
        InstallError::Foreign { .. } => Some("Look at the file, then move or delete it yourself.".to_owned()),
        InstallError::Changed { .. } => Some("Try again.".to_owned()),
        InstallError::Unrecorded { .. } => Some("Run the command again: it then removes only the record.".to_owned()),
        InstallError::DanglingLink { .. } => {
            Some("Create the file that the link points to, or remove the link.".to_owned())
        }
        _ => None,
    };
    let error = CliError::from(error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// The error for an unknown profile, with the known ones.
pub(super) fn unknown(name: &str, profiles: &Profiles) -> CliError {
    let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
    CliError::refused("no_profile", format!("There is no profile {}.", sanitise(name)))
        .hint(format!("Profiles: {}. Your own profiles are HOME/data/profiles/NAME.toml.", names.join(", ")))
}
