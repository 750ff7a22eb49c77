//! Leases after a restart of the machine.

use super::*;

#[test]
fn after_a_reboot_it_waits_until_the_old_lease_is_surely_over() {
    let mut server = server();
    let mut bridge = Bridge::start(own(), 1, 0);
    let now = alone(&mut bridge, &mut server, 0, 5_000);
    let mut next = Bridge::start(Own { boot: "b2".to_owned(), ..bridge.own.clone() }, 2, now);
    let now = alone(&mut next, &mut server, now, UNCHANGED_MS - 5_000);
    assert!(!next.lease.is_valid_for(0, now));
    let now = alone(&mut next, &mut server, now, 15_000);
    assert!(next.lease.is_valid_for(0, now) && next.ended.is_none());
}

#[test]
fn after_a_power_cut_the_sidecar_has_time_to_write_the_journal_s_last_lines_again() {
    for (written_again, serves) in [(10, true), (9, false)] {
        let mut server = server();
        let mut first = Bridge::start(own(), 1, 0);
        let now = alone(&mut first, &mut server, 0, 5_000);
        let cut = Own { boot: "b2".to_owned(), journal_seq: 3, ..first.own.clone() };
        let mut next = Bridge::start(cut, 2, now);
        let now = alone(&mut next, &mut server, now, 30_000);
        assert!(next.ended.is_none() && !next.lease.is_valid_for(0, now));
        next.lease.journal_was_at(written_again);
        let now = alone(&mut next, &mut server, now, UNCHANGED_MS);
        let is_rolled_back = matches!(next.ended, Some(LeaseProblem::HomeRolledBack(_)));
        assert_eq!((next.lease.is_valid_for(0, now), is_rolled_back), (serves, !serves));
    }
}
