//! The verdicts on the machine, as a table, and the facts of the machine that runs the test.

use super::super::check::CheckState;
use super::*;

fn bad(checks: Vec<Check>) -> Vec<(String, CheckState)> {
    let wanted = |check: &Check| matches!(check.state, CheckState::Warn | CheckState::Fail);
    checks.into_iter().filter(wanted).map(|check| (check.id, check.state)).collect()
}

fn one(id: &str, state: CheckState) -> Vec<(String, CheckState)> {
    vec![(id.to_owned(), state)]
}

#[test]
fn each_state_of_a_disk_has_its_judgement() {
    let good =
        Disk { free_bytes: 1 << 40, free_inodes: 1 << 20, all_inodes: 1 << 21, is_read_only: false, network: None };
    let judge = |disk: Disk| bad(judge_disk(&disk, Path::new("/h")));
    assert_eq!(judge(good), []);
    assert_eq!(judge(Disk { free_bytes: 0, ..good }), one("disk.space", CheckState::Fail));
    assert_eq!(judge(Disk { free_bytes: 50 << 20, ..good }), one("disk.space", CheckState::Warn));
    assert_eq!(judge(Disk { free_inodes: 0, ..good }), one("disk.inodes", CheckState::Fail));
    assert_eq!(judge(Disk { free_inodes: 500, ..good }), one("disk.inodes", CheckState::Warn));
    assert_eq!(judge(Disk { free_inodes: 0, all_inodes: 0, ..good }), []);
    assert_eq!(judge(Disk { is_read_only: true, ..good }), one("disk.writable", CheckState::Fail));
    assert_eq!(judge(Disk { network: Some("NFS"), ..good }), one("disk.kind", CheckState::Warn));
}

/// The numbers as the kernel's `linux/magic.h` and the sources of these file systems have them.
#[cfg(target_os = "linux")]
#[test]
fn network_file_systems_are_known_by_the_kernels_numbers() {
    use nix::sys::statfs as known;
    let of = |kind: known::FsType| network_of(kind.0 as u32);
    let old = [known::NFS_SUPER_MAGIC, known::SMB_SUPER_MAGIC, known::CODA_SUPER_MAGIC, known::FUSE_SUPER_MAGIC];
    assert_eq!(old.map(of), [Some("NFS"), Some("SMB"), Some("Coda"), Some("FUSE")]);
    let shares = [0xFF53_4D42, 0xFE53_4D42, 0x00C3_6400, 0x0102_1997, 0x5346_414F];
    assert_eq!(shares.map(network_of), [Some("SMB"), Some("SMB"), Some("Ceph"), Some("9P"), Some("AFS")]);
    let local = [known::EXT4_SUPER_MAGIC, known::TMPFS_MAGIC, known::BTRFS_SUPER_MAGIC];
    assert_eq!(local.map(of), [None; 3]);
    const XFS: u32 = 0x5846_5342;
    assert_eq!(network_of(XFS), None, "nix has this number with glibc only");
}

#[test]
fn each_limit_has_its_judgement() {
    let good = Limits {
        refused: None,
        watches: Some(65_536),
        queued: Some(16_384),
        open_files: Some(1_024),
        sees_growth: true,
    };
    let judge = |limits: Limits| bad(judge_limits(&limits));
    assert_eq!(judge(good.clone()), []);
    assert_eq!(judge(Limits { refused: Some("too many".to_owned()), ..good }), one("limits.inotify", CheckState::Warn));
    assert_eq!(judge(Limits { watches: Some(8), ..good.clone() }), one("limits.inotify", CheckState::Warn));
    assert_eq!(judge(Limits { queued: Some(16), ..good.clone() }), one("limits.inotify", CheckState::Warn));
    let queue = Limits { watches: None, queued: None, sees_growth: false, ..good.clone() };
    assert_eq!(judge(queue.clone()), []);
    assert!(judge_limits(&queue)[0].said.contains("every second"), "it says what it costs");
    let refused = Limits { refused: Some("too many".to_owned()), ..queue };
    assert_eq!(judge(refused), one("limits.watches", CheckState::Warn));
    assert_eq!(judge(Limits { open_files: Some(64), ..good }), one("limits.open_files", CheckState::Warn));
}

#[test]
fn a_clock_is_wrong_before_this_year_and_set_back_when_a_file_lies_ahead() {
    let good = Time { wall_ms: EARLIEST_MS + 1, boot_ms: 1_000, ahead: None, is_synchronised: Some(true) };
    let judge = |time: Time| bad(judge_clock(&time));
    let ahead = |ms: i64| Some((PathBuf::from("/h/view/sidecar.json"), ms));
    assert_eq!(judge(good.clone()), []);
    assert_eq!(judge(Time { wall_ms: 0, ..good.clone() }), one("clock.wall", CheckState::Fail));
    assert_eq!(judge(Time { ahead: ahead(1_000), ..good }), []);
    assert_eq!(judge(Time { ahead: ahead(2 * AHEAD_MS), ..good }), one("clock.wall", CheckState::Warn));
    assert_eq!(judge(Time { is_synchronised: Some(false), ..good }), one("clock.service", CheckState::Warn));
}

#[test]
fn this_machine_can_be_asked() {
    let dir = tempfile::tempdir().expect("a folder");
    let disk = gather_disk(dir.path()).expect("asked");
    assert!(disk.free_bytes > 0 && !disk.is_read_only, "{disk:?}");
    assert_eq!(one_more_watch(dir.path()), Ok(()));
    assert!(one_more_watch(&dir.path().join("none")).is_err());
    if cfg!(target_os = "linux") {
        let own = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit").0;
        assert_eq!(open_files_of(std::process::id()), Some(own));
    }
}
