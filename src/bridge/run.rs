//! `tasuki-fleet run`: starts the bridge, and hands it one event after the other until it is told to end.

use super::folder::FleetFolder;
use super::identity::{Membership, is_key_awaited, load_claims};
use super::lock::{LOCK, lock};
use super::machine::BridgeEvent;
use super::roster::journal_seq;
use super::runtime::wait_for;
use super::seen::SeenFile;
use super::settings::FleetSettings;
use super::state::{Bridge, BridgeParts};
use super::watch::FolderWatch;
use super::{members_file, problem};
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::clock::alarm::Alarm;
use crate::config::Home;
use crate::core::host::FleetName;
use crate::core::text::sha256;
use crate::fleet::lease::Own;
use crate::fleet::nats::{ArrivedLetter, NatsCourier};
use crate::fleet::{Members, What};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// How many letters may wait for the loop. The others stay at the server.
const LETTERS: usize = 4;
/// How many answers of the server may wait for the loop.
const ANSWERS: usize = 256;

/// How long the bridge waits before it runs a `key_command` again that has failed: twice as long after each failure, up
/// to the second value.
const KEY_AGAIN: Duration = Duration::from_secs(15);
const KEY_AGAIN_AT_MOST: Duration = Duration::from_secs(5 * 60);

/// The id of a Linux machine.
const MACHINE_ID: &str = "/etc/machine-id";
/// The command that prints the id of a Mac. A Mac's name changes with its network.
const IOREG: [&str; 4] = ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"];

/// Runs the bridge until it is told to end.
///
/// # Errors
/// This home has joined no fleet, another bridge runs on it, or its files can't be used. Or the bridge has learned that
/// it must not serve as its host.
pub(crate) fn run(home: &Home) -> Result<(), CliError> {
    let folder = FleetFolder::open(home)?;
    // The files are read under the lock: commands such as `leave` and `rejoin` hold it while they change them.
    let lock = lock(&folder)?;
    let (settings, member) = member(&folder, std::thread::sleep)?;
    let seen = SeenFile::load(&folder);
    let own = own(&folder, home, &member, &lock, &seen)?;
    wait_for(serve(home, folder, settings, member, (own, seen)))
}

/// The settings, and this host as a member. A `key_command` that has failed is run again after a pause, for example
/// until the operator has unlocked the vault: here nothing handles signals yet, so they end the program.
fn member(folder: &FleetFolder, mut pause: impl FnMut(Duration)) -> Result<(FleetSettings, Membership), CliError> {
    let mut wait = KEY_AGAIN;
    loop {
        let settings = FleetSettings::load(folder)?;
        match Membership::load(folder, &settings) {
            Err(error) if is_key_awaited(&error) => {
                tracing::warn!("{error} The bridge does not serve yet; it tries again in {} s.", wait.as_secs());
                pause(wait);
                wait = wait.saturating_mul(2).min(KEY_AGAIN_AT_MOST);
            }
            member => return member.map(|member| (settings, member)),
        }
    }
}

/// What distinguishes this bridge from one on a copy of its home.
fn own(folder: &FleetFolder, home: &Home, member: &Membership, lock: &File, seen: &SeenFile) -> Result<Own, CliError> {
    let meta = lock.metadata().map_err(|error| CliError::file("Can't check", &folder.path("", LOCK), &error))?;
    Ok(Own {
        machine: machine(&member.fleet.name, &machine_id()?, meta.ino()),
        boot: sha256(Clock::new().now().boot.to_string().as_bytes()),
        instance: uuid::Uuid::new_v4(),
        // Without a journal nothing shows that the home was set back: the highest number passes that check.
        journal_seq: journal_seq(home).unwrap_or(u64::MAX),
        last_n: seen.last_n,
        stored_n: seen.stored_n,
        was_moved: member.host.was_moved,
    })
}

/// The hash of this machine and this home, which must stay the same over reboots and in another network. A copy of the
/// home has a lock file of its own, with another inode. The number of the device is left out: a file system may have
/// another after each reboot.
fn machine(fleet: &FleetName, machine_id: &str, inode: u64) -> String {
    sha256(format!("{fleet}\n{}\n{inode}", machine_id.trim()).as_bytes())
}

/// The id of this machine; its name if the system gives it no id.
///
/// # Errors
/// The id can't be read. The name must not stand in for it then: the bridge would take its own home for a copy.
fn machine_id() -> Result<String, CliError> {
    let unread = |what: &str, why: &dyn std::fmt::Display| {
        CliError::refused(
            "machine_id",
            format!("The id of this machine can't be read: {what}: {why}. Nothing was sent."),
        )
        .hint("Without it, the bridge can't tell this home from a copy. Start the bridge again.")
    };
    if cfg!(target_os = "macos") {
        let told = Command::new(IOREG[0]).args(&IOREG[1..]).output().map_err(|error| unread(IOREG[0], &error))?;
        let id = platform_uuid(&String::from_utf8_lossy(&told.stdout)).map(str::to_owned);
        return id.ok_or_else(|| unread(IOREG[0], &"it does not name IOPlatformUUID"));
    }
    match std::fs::read_to_string(MACHINE_ID) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
        }
        read => read.map_err(|error| unread(MACHINE_ID, &error)),
    }
}

/// The id of a Mac in what `ioreg` prints.
fn platform_uuid(told: &str) -> Option<&str> {
    let line = told.lines().find_map(|line| line.trim_start().strip_prefix("\"IOPlatformUUID\" = \""))?;
    line.strip_suffix('"').filter(|id| !id.is_empty())
}

async fn serve(
    home: &Home,
    folder: FleetFolder,
    settings: FleetSettings,
    member: Membership,
    (own, seen): (Own, SeenFile),
) -> Result<(), CliError> {
    let access = member.access(&folder, &settings)?;
    let (heard_to, mut heard) = mpsc::channel(32);
    let (done_to, mut done) = mpsc::channel(ANSWERS);
    let (serves_to, serves) = watch::channel(false);
    let login = (Arc::clone(&member.keys), claims(&folder, &member));
    let courier = NatsCourier::connect(member.place(), access, login, heard_to).await;
    let courier = courier.map_err(|error| CliError::config("server", format!("{error}.")))?;
    let list = members_file::load(&folder, &member.fleet.key, &member.fleet.name)?;
    let mut letters = letters(&courier, &serves);
    let parts = BridgeParts {
        home: home.clone(),
        folder: folder.clone(),
        settings,
        member,
        members: Members::new(list),
        courier: courier.clone(),
        own,
        numbers: seen.numbers,
        box_created: seen.box_created,
        done: done_to,
        serves: serves_to,
    };
    let told = problem::last_told(&folder);
    let mut bridge = Bridge::new(parts)?;
    let mut changes = changes(&courier, bridge.directory.wants_changes.subscribe());
    let (mut folders, mut alarm) = (FolderWatch::new(home), Alarm::new());
    let (mut term, mut interrupt) = (signals(SignalKind::terminate())?, signals(SignalKind::interrupt())?);
    tracing::info!(host = bridge.here.host.as_str(), fleet = bridge.here.fleet.as_str(), "tasuki-fleet runs");
    bridge.take([BridgeEvent::Look]);
    loop {
        let wait = Duration::from_millis(bridge.wait_ms());
        // Events that never stop must not put the look off.
        let event = if bridge.is_look_due() {
            BridgeEvent::Look
        } else {
            tokio::select! {
                _ = term.recv() => break,
                _ = interrupt.recv() => break,
                Some(news) = heard.recv() => BridgeEvent::Heard(news),
                Some(what) = done.recv() => BridgeEvent::Done(what),
                Some((name, bytes)) = changes.recv() => BridgeEvent::Changed(name, bytes),
                Some(letter) = letters.recv() => BridgeEvent::Arrived(letter),
                () = folders.files_changed() => BridgeEvent::Files,
                () = folders.views_changed() => BridgeEvent::Views,
                () = alarm.ring_after(wait) => BridgeEvent::Look,
            }
        };
        if matches!(event, BridgeEvent::Look) {
            folders.retry();
        }
        // The server's answers that are there already are taken together, so that two hundred rosters do not make the
        // bridge do everything that is due two hundred times.
        let ready = std::iter::from_fn(|| done.try_recv().ok()).take(ANSWERS).map(BridgeEvent::Done);
        bridge.take(std::iter::once(event).chain(ready));
        if let Some(ended) = bridge.ended.take() {
            return Err(problem::tell(home, &folder, &ended, told.as_deref()).await);
        }
    }
    courier.flush().await;
    tracing::info!("tasuki-fleet ends");
    Ok(())
}

/// Reads this host's claims again whenever they are asked for: a new ticket may have brought others. If they can't be
/// read, those from the start still count.
fn claims(folder: &FleetFolder, member: &Membership) -> impl Fn() -> String + Send + Sync + 'static {
    let (folder, first) = (folder.clone(), member.jwt.clone());
    move || load_claims(&folder).unwrap_or_else(|_| first.clone())
}

/// Fetches letters with requests and with results, while `serves` is true.
fn letters(courier: &NatsCourier, serves: &watch::Receiver<bool>) -> mpsc::Receiver<ArrivedLetter> {
    let (to, letters) = mpsc::channel(LETTERS);
    for what in [What::Req, What::Res] {
        let (courier, serves, to) = (courier.clone(), serves.clone(), to.clone());
        tokio::spawn(async move { courier.bring_letters(what, serves, to).await });
    }
    letters
}

/// Reports changes of the list of members always, and changes of rosters while `wanted` is true.
fn changes(courier: &NatsCourier, mut wanted: watch::Receiver<bool>) -> mpsc::Receiver<(String, Vec<u8>)> {
    let (to, changes) = mpsc::channel(ANSWERS);
    let (list, list_to) = (courier.clone(), to.clone());
    tokio::spawn(async move { list.bring_changes("_fleet", list_to).await });
    let rosters = courier.clone();
    tokio::spawn(async move {
        while wanted.wait_for(|wanted| *wanted).await.is_ok() {
            let mut wanted = wanted.clone();
            tokio::select! {
                () = rosters.bring_changes("*", to.clone()) => {}
                _ = wanted.wait_for(|wanted| !*wanted) => {}
            }
        }
    });
    changes
}

fn signals(kind: SignalKind) -> Result<tokio::signal::unix::Signal, CliError> {
    signal(kind).map_err(|error| CliError::refused("signal", format!("Signals can't be awaited: {error}.")))
}

#[cfg(test)]
mod tests {
    use super::super::admission::{Ticket, save_ticket};
    use super::super::folder::of_test;
    use super::super::identity::HostFile;
    use super::*;
    use crate::fleet::{FleetKeys, HostKeys};

    #[test]
    fn a_bridge_comes_up_when_its_key_command_prints_the_key_at_last() {
        let (_dir, _, folder) = of_test();
        let ticket = Ticket {
            fleet: "home".parse().expect("a name"),
            fleet_key: FleetKeys::generate().account_key(),
            servers: vec!["tls://10.0.0.1:4222".to_owned()],
            ca: None,
            domain: "hub".to_owned(),
            jwt: "a.b.c".to_owned(),
        };
        save_ticket(&folder, &HostFile::new("box".parse().expect("a name")), &ticket).expect("saved");
        let keys = HostKeys::generate();
        let [user, sealing] = keys.seeds();
        let (vault, command) = (folder.path("", "vault"), "key_command = [\"cat\", \"VAULT\"]\n");
        let settings = command.replace("VAULT", &vault.display().to_string());
        std::fs::write(folder.path("", "fleet.toml"), settings).expect("written");
        let mut pauses = Vec::new();
        let found = member(&folder, |wait| {
            pauses.push(wait.as_secs());
            if pauses.len() == 7 {
                std::fs::write(&vault, format!("{user}\n{sealing}\n")).expect("unlocked");
            }
        });
        assert_eq!(found.expect("a member").1.keys.user_key(), keys.user_key());
        assert_eq!(pauses, [15, 30, 60, 120, 240, 300, 300]);
    }

    #[test]
    fn a_machine_is_known_again_by_its_id_and_the_lock_s_inode_alone() {
        let fleet = "home".parse().expect("a name");
        let own = machine(&fleet, "4711\n", 7);
        assert_eq!(machine(&fleet, "4711", 7), own);
        for (id, inode) in [("4712", 7), ("4711", 8)] {
            assert_ne!(machine(&fleet, id, inode), own);
        }
        let told = "+-o J314  <class IOPlatformExpertDevice>\n    {\n      \"IOPlatformUUID\" = \"AB-12\"\n    }\n";
        assert_eq!((platform_uuid(told), platform_uuid("")), (Some("AB-12"), None));
    }
}
