//! Streams and consumers as they are found at the server, with one difference after the other.

use super::*;
use serde_json::json;

fn fleet() -> FleetName {
    "home".parse().expect("a name")
}

/// What a server makes of the configuration: with its own defaults, and without what is not set.
fn as_found(config: &impl serde::Serialize) -> Value {
    let mut value = serde_json::to_value(config).expect("a plain value");
    let fields = value.as_object_mut().expect("an object");
    for (name, default) in [("max_msgs", json!(-1)), ("max_consumers", json!(-1)), ("max_waiting", json!(512))] {
        fields.entry(name).or_insert(default);
    }
    fields.insert("num_replicas".to_owned(), json!(3));
    fields.insert("compression".to_owned(), json!("none"));
    fields.insert("persist_mode".to_owned(), json!("default"));
    fields.insert("duplicate_window".to_owned(), json!(120_000_000_000_u64));
    fields.insert("metadata".to_owned(), json!({"_nats.ver": "2.15.1"}));
    value
}

fn streams(change: impl FnOnce(&mut Value, &mut Value)) -> Vec<String> {
    let (mut of_letters, mut of_rosters) = (as_found(&letters(&fleet(), 1)), as_found(&rosters(&fleet(), 1)));
    change(&mut of_letters, &mut of_rosters);
    stream_differences(&fleet(), [&of_letters, &of_rosters])
}

#[test]
fn streams_as_setup_makes_them_do_not_differ() {
    assert_eq!(streams(|_, _| {}), Vec::<String>::new());
    let other = streams(|_, rosters| rosters["republish"]["headers_only"] = Value::Null);
    assert_eq!(other, Vec::<String>::new(), "what is not set is the same as what is off");
}

#[test]
fn each_difference_of_a_stream_is_named() {
    let one = |change: fn(&mut Value, &mut Value), told: &str| assert_eq!(streams(change), [told]);
    one(
        |letters, _| letters["max_age"] = json!(86_400_000_000_000_u64),
        "tk_home_box: max_age is 1day instead of 8days",
    );
    one(|letters, _| letters["discard"] = json!("old"), "tk_home_box: discard is \"old\" instead of \"new\"");
    one(
        |letters, _| letters["allow_rollup_hdrs"] = json!(true),
        "tk_home_box: allow_rollup_hdrs is true and must not be set",
    );
    one(
        |letters, _| letters["allow_of_later"] = json!(true),
        "tk_home_box: allow_of_later is true and must not be set",
    );
    one(|letters, _| letters["max_msgs"] = json!(5), "tk_home_box: max_msgs is 5 and must not be set");
    one(|_, rosters| rosters["allow_direct"] = json!(false), "tk_home_hosts: allow_direct is false instead of true");
    one(
        |_, rosters| drop(rosters.as_object_mut().expect("fields").remove("deny_delete")),
        "tk_home_hosts: deny_delete is not set instead of true",
    );
    one(
        |_, rosters| rosters["max_age"] = json!(60_000_000_000_u64),
        "tk_home_hosts: max_age is 1m and must not be set",
    );
    assert_eq!(streams(|_, rosters| rosters["republish"]["dest"] = json!("elsewhere")).len(), 1);
    assert_eq!(streams(|letters, _| *letters = Value::Null), ["tk_home_box: it has no configuration"]);
}

#[test]
fn each_difference_of_a_consumer_is_named() {
    let host: HostName = "box".parse().expect("a name");
    let differ = |change: fn(&mut Value)| {
        let [mut requests, results] = consumers(&fleet(), &host).map(|config| as_found(&config.into_consumer_config()));
        change(&mut requests);
        consumer_differences(&fleet(), &host, [&requests, &results])
    };
    assert_eq!(differ(|_| {}), Vec::<String>::new());
    assert_eq!(differ(|found| found["ack_wait"] = json!(1_000_000_000)), ["box-req: ack_wait is 1s instead of 1m"]);
    let pushes = differ(|found| found["deliver_subject"] = json!("tk.home.host.box"));
    assert_eq!(pushes, ["box-req: deliver_subject is \"tk.home.host.box\" and must not be set"]);
    let few = differ(|found| found["max_deliver"] = json!(1));
    assert_eq!(few, ["box-req: max_deliver is 1 and must not be set"]);
}
