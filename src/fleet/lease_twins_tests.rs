//! Two bridges of one identity that do everything at the same instant: a copy of a home and the home itself, two copies
//! of a virtual machine, or two homes that the operator has both called moved.

use super::*;

/// Lets all bridges do what they have to do now. Each decides before it knows what the others have done: if two put
/// their rosters over the same one, the server takes that of the first.
fn together(bridges: &mut [&mut Bridge; 2], server: &mut Server, now_ms: u64) {
    for _ in 0..8 {
        let acts: Vec<Option<LeaseAct>> = bridges.iter_mut().map(|bridge| bridge.lease.poll(now_ms)).collect();
        let looks = acts.iter().filter(|act| **act == Some(LeaseAct::Look)).count();
        let puts = acts.iter().filter(|act| matches!(act, Some(LeaseAct::Put { .. }))).count();
        for (bridge, act) in bridges.iter_mut().zip(acts) {
            match act {
                None | Some(LeaseAct::NoteScribble) => {}
                Some(LeaseAct::End(problem)) => bridge.ended = Some(problem),
                Some(LeaseAct::Look) => bridge.lease.looked(&server.standing(), server.sequence, now_ms),
                Some(LeaseAct::Put { n, expected, serves }) => bridge.put(server, (n, expected, serves), now_ms, false),
            }
        }
        if looks + puts == 0 {
            return;
        }
    }
    panic!("they are never done");
}

#[test]
fn of_two_bridges_that_begin_at_the_same_instant_one_serves_and_the_other_ends() {
    type Expected = fn(&LeaseProblem) -> bool;
    let is_copied: Expected = |problem| matches!(problem, LeaseProblem::HomeCopied(_));
    let is_taken: Expected = |problem| matches!(problem, LeaseProblem::HostTaken(_));
    let of = |machine: &str, boot: &str| Own { machine: machine.to_owned(), boot: boot.to_owned(), ..own() };
    let moved = |machine: &str| Own { was_moved: true, ..of(machine, "b1") };
    let cases = [
        ("a home and its copy", None, [of("m1", "b1"), of("m2", "b1")], is_copied),
        ("two copies of one machine", None, [of("m1", "b1"), of("m1", "b2")], is_taken),
        (
            "these, while an earlier roster stands there",
            Some(of("m1", "b0")),
            [of("m1", "b1"), of("m1", "b2")],
            is_taken,
        ),
        ("two homes that were moved", Some(of("m1", "b1")), [moved("m2"), moved("m3")], is_taken),
    ];
    for (name, former, [one, two], expected) in cases {
        let mut server = server();
        let (mut from_ms, mut seen) = (0, 0);
        if let Some(former) = former {
            let mut former = Bridge::start(former, 9, 0);
            from_ms = alone(&mut former, &mut server, 0, 5_000);
            seen = former.own.last_n;
        }
        let [one, two] = [one, two].map(|own| Own { last_n: seen, stored_n: seen, ..own });
        let (mut one, mut two) = (Bridge::start(one, 1, from_ms), Bridge::start(two, 2, from_ms));
        for now in (from_ms..from_ms + 200_000).step_by(500) {
            together(&mut [&mut one, &mut two], &mut server, now);
            assert!(!two.lease.is_valid_for(0, now), "{name}: the second one never serves");
        }
        assert!(one.lease.is_valid_for(0, from_ms + 199_500) && one.ended.is_none(), "{name}: {:?}", one.ended);
        let problem = two.ended.unwrap_or_else(|| panic!("{name}: it ends"));
        assert!(expected(&problem), "{name}: {problem:?}");
    }
}
