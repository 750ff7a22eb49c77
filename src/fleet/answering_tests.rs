//! What is done with letters, check by check.

use super::super::keys::HostKeys;
use super::super::letter::{Age, Ends};
use super::*;
use uuid::Uuid;

fn name(text: &str) -> HostName {
    text.parse().expect("a name")
}

struct Setting {
    from: Member,
    here: Here,
    header: Header,
    accepts: Accepts,
}

fn setting() -> Setting {
    let keys = HostKeys::generate();
    let from = Member {
        name: name("a"),
        home_id: HomeId(Uuid::from_u128(1)),
        user_key: keys.user_key(),
        box_key: keys.box_key(),
        admitted_at: "2026-11-25T12:00:00.000Z".to_owned(),
    };
    let fleet: FleetName = "home".parse().expect("a name");
    let here = Here { fleet: fleet.clone(), host: name("b"), home_id: HomeId(Uuid::from_u128(2)) };
    let ends = Ends {
        from: name("a"),
        to: name("b"),
        from_home: HomeId(Uuid::from_u128(1)),
        to_home: HomeId(Uuid::from_u128(2)),
    };
    let age = Age { sent_at: "2026-11-25T12:00:00.000Z".to_owned(), age_ms: 1_000, ttl_ms: 60_000 };
    let header = Header::new(fleet, What::Req, "r-1".parse().expect("an id"), ends, age);
    let accepts = serde_json::from_str(r#"{"a": ["send"]}"#).expect("rights");
    Setting { from, here, header, accepts }
}

impl Setting {
    fn known(&self) -> LetterContext<'_> {
        LetterContext {
            accepts: &self.accepts,
            kind: Some("agent_send"),
            host_field: None,
            leads_outside: false,
            is_answered: false,
            was_dropped: false,
            was_another: false,
            sent_wall_ms: Some(1_000_000_000_000),
            now_wall_ms: 1_000_000_050_000,
            in_stream_ms: 2_000,
            has_room: true,
            can_serve: true,
        }
    }

    fn judged(&self, known: &LetterContext<'_>) -> Judged {
        judge(&self.header, &self.from, &self.here, known)
    }
}

#[test]
fn what_is_authentic_allowed_and_in_time_is_carried_out() {
    let setting = setting();
    assert_eq!(setting.judged(&setting.known()), Judged::CarryOut);
    assert_eq!(setting.judged(&LetterContext { can_serve: false, ..setting.known() }), Judged::Later);
    assert_eq!(request_id(&name("a"), &"r-1".parse().expect("an id")).as_str(), "fleet.a.r-1");
}

/// A member reflects, relabels and replays letters of others: the header of such a letter shows it.
#[test]
fn a_letter_that_disagrees_with_its_place_is_not_authentic_and_nobody_is_answered() {
    type Change = fn(&mut Setting);
    let changes: [(&str, Change); 5] = [
        ("fleet", |setting| setting.here.fleet = "other".parse().expect("a name")),
        ("what", |setting| setting.header.what = What::Res),
        ("from", |setting| setting.from.name = name("m")),
        ("to", |setting| setting.here.host = name("c")),
        ("from_home", |setting| setting.from.home_id = HomeId(Uuid::from_u128(9))),
    ];
    for (what, change) in changes {
        let mut setting = setting();
        change(&mut setting);
        // Not even if it was answered before.
        let known = LetterContext { is_answered: true, ..setting.known() };
        assert_eq!(setting.judged(&known), Judged::NotAuthentic(what));
    }
}

#[test]
fn each_refusal_has_its_reason_and_the_first_one_counts() {
    let setting = setting();
    let refused = |known: LetterContext<'_>| match setting.judged(&known) {
        Judged::Refuse(refusal) => refusal.answer(),
        other => panic!("{other:?}"),
    };
    let known = setting.known();
    let days_9 = 9 * 24 * 3_600_000;
    assert_eq!(refused(LetterContext { now_wall_ms: known.now_wall_ms + days_9, ..known.clone() }), (410, "too_old"));
    assert_eq!(refused(LetterContext { now_wall_ms: known.now_wall_ms - days_9, ..known.clone() }), (410, "too_old"));
    assert_eq!(refused(LetterContext { sent_wall_ms: None, ..known.clone() }), (410, "too_old"));
    assert_eq!(refused(LetterContext { in_stream_ms: 59_001, ..known.clone() }), (410, "expired"));
    assert_eq!(
        setting.judged(&LetterContext { in_stream_ms: 59_000, ..known.clone() }),
        Judged::CarryOut,
        "just in time"
    );
    assert_eq!(refused(LetterContext { in_stream_ms: u64::MAX, ..known.clone() }), (410, "expired"));
    assert_eq!(refused(LetterContext { kind: Some("handoff"), ..known.clone() }), (403, "not_accepted"));
    assert_eq!(refused(LetterContext { kind: Some("publish"), ..known.clone() }), (400, "not_from_elsewhere"));
    assert_eq!(refused(LetterContext { kind: None, ..known.clone() }), (400, "not_from_elsewhere"));
    assert_eq!(refused(LetterContext { host_field: Some("c"), ..known.clone() }), (400, "not_from_elsewhere"));
    assert_eq!(setting.judged(&LetterContext { host_field: Some("a"), ..known.clone() }), Judged::CarryOut);
    assert_eq!(refused(LetterContext { leads_outside: true, ..known.clone() }), (400, "not_from_elsewhere"));
    assert_eq!(refused(LetterContext { has_room: false, ..known.clone() }), (429, "too_many"));
    assert_eq!(
        refused(LetterContext { has_room: false, kind: Some("handoff"), ..known.clone() }),
        (403, "not_accepted"),
        "a host without the right is not told that it asks too often"
    );
    let late_and_not_allowed = LetterContext { in_stream_ms: 70_000, kind: Some("handoff"), ..known.clone() };
    assert_eq!(refused(late_and_not_allowed), (410, "expired"));
    // A refusal needs no sidecar.
    assert_eq!(refused(LetterContext { in_stream_ms: 70_000, can_serve: false, ..known.clone() }), (410, "expired"));
    assert_eq!(
        setting.judged(&LetterContext { in_stream_ms: 70_000, is_answered: true, ..known }),
        Judged::AnswerAgain
    );
}

#[test]
fn a_letter_to_a_home_that_was_here_before_is_answered_and_not_carried_out() {
    let mut setting = setting();
    setting.here.home_id = HomeId(Uuid::from_u128(3));
    assert_eq!(setting.judged(&setting.known()), Judged::Refuse(FleetRefusal::HostReborn));
}

/// The bridge has given the request to the sidecar, and was killed. Meanwhile the request's time is over, or the right
/// is gone; but the sidecar has the request, and may carry it out at any moment.
#[test]
fn what_the_sidecar_may_have_is_never_said_to_be_refused() {
    let setting = setting();
    let dropped = LetterContext { was_dropped: true, ..setting.known() };
    assert_eq!(setting.judged(&dropped), Judged::CarryOut, "again: the same id and the same bytes");
    let late = LetterContext { in_stream_ms: 70_000, ..dropped.clone() };
    assert_eq!(setting.judged(&late), Judged::TakeBack);
    let nobody = Accepts::default();
    assert_eq!(setting.judged(&LetterContext { accepts: &nobody, ..dropped.clone() }), Judged::TakeBack);
    assert_eq!(setting.judged(&LetterContext { is_answered: true, ..late }), Judged::AnswerAgain);
}

/// A host that was set up again under its name may use an id again.
#[test]
fn an_answer_to_another_request_of_the_same_id_is_not_given_out() {
    let setting = setting();
    let other = LetterContext { was_another: true, ..setting.known() };
    assert_eq!(setting.judged(&other), Judged::IdReused);
    assert_eq!(setting.judged(&LetterContext { is_answered: true, ..other }), Judged::IdReused);
}

#[test]
fn a_result_for_a_home_that_was_here_before_is_not_for_this_one() {
    let mut setting = setting();
    assert_eq!(disagrees_as_result(&setting.header, &setting.from, &setting.here), Some("what"));
    setting.header.what = What::Res;
    assert_eq!(disagrees_as_result(&setting.header, &setting.from, &setting.here), None);
    setting.here.home_id = HomeId(Uuid::from_u128(3));
    assert_eq!(disagrees_as_result(&setting.header, &setting.from, &setting.here), Some("to_home"));
}

#[test]
fn only_a_member_is_a_sender() {
    let setting = setting();
    let list = MemberList::new(setting.here.fleet, 1, vec![setting.from]);
    assert_eq!(sender(&list, "a").map(|member| &member.name), Some(&name("a")));
    assert!(["b", "", "*", "_fleet", "a.b"].iter().all(|from| sender(&list, from).is_none()));
}

#[test]
fn the_time_before_the_server_had_the_letter_counts_too() {
    let mut header = setting().header;
    assert_eq!(on_its_way_since(&header, 10_000), 10_000);
    header.server_ms = Some(4_000);
    assert_eq!(on_its_way_since(&header, 10_000), 4_000);
    // A sender that knows the clock wrongly does not make a letter younger than the server says.
    header.server_ms = Some(11_000);
    assert_eq!(on_its_way_since(&header, 10_000), 10_000);
}
