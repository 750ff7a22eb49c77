//! A member that is hostile: it has its own key and its own rights at the server, and uses them for everything that
//! they are not meant for.

use crate::fleet::{NatsServer, TestFleet, TestHost, text};
use crate::support::processes::peak_kib;
use crate::support::tally;
use async_nats::{Client, ConnectOptions, HeaderMap};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tasuki::core::host::{FleetName, HostName};
use tasuki::fleet::letter::{Age, Ends};
use tasuki::fleet::{BoxKey, Header, HostKeys, Letter, LetterPart, MemberList, What};

/// The hostile member, at the server.
struct Mallory {
    client: Client,
    keys: HostKeys,
    name: HostName,
    fleet: FleetName,
    members: MemberList,
}

fn keys_of(host: &TestHost) -> HostKeys {
    let seeds = fs::read_to_string(host.files("key")).expect("its key");
    let mut lines = seeds.lines();
    HostKeys::from_seeds(lines.next().expect("user"), lines.next().expect("box")).expect("its key")
}

fn members_of(host: &TestHost) -> MemberList {
    use data_encoding::BASE64;
    let read =
        |name: &str| -> Value { serde_json::from_slice(&fs::read(host.files(name)).expect(name)).expect("JSON") };
    let (list, own) = (read("members.json"), read("host.json"));
    let signed = BASE64.decode(list["signed"].as_str().expect("signed").as_bytes()).expect("base64");
    let key = own["fleet"]["key"].as_str().expect("a key").to_owned().try_into().expect("a key");
    MemberList::open(&signed, &key, &"test".parse().expect("a name")).expect("the list")
}

impl Mallory {
    async fn of(host: &TestHost) -> Mallory {
        let jwt = fs::read_to_string(host.files("jwt")).expect("its claims");
        let seed = fs::read_to_string(host.files("key")).expect("its key").lines().next().expect("a seed").to_owned();
        let pair = Arc::new(nkeys::KeyPair::from_seed(&seed).expect("a seed"));
        let own: Value = serde_json::from_slice(&fs::read(host.files("host.json")).expect("its file")).expect("JSON");
        let url = own["fleet"]["servers"][0].as_str().expect("an address").to_owned();
        let options = ConnectOptions::with_jwt(jwt, move |nonce| {
            let pair = Arc::clone(&pair);
            async move { pair.sign(&nonce).map_err(async_nats::AuthError::new) }
        });
        let options = options.add_root_certificates(host.files("ca.pem")).require_tls(true);
        let options =
            options.custom_inbox_prefix(format!("_INBOX.{}", host.name)).request_timeout(Some(Duration::from_secs(2)));
        Mallory {
            client: options.connect(url).await.expect("it may log in"),
            keys: keys_of(host),
            name: host.name.parse().expect("a name"),
            fleet: "test".parse().expect("a name"),
            members: members_of(host),
        }
    }

    fn box_of(&self, host: &str) -> BoxKey {
        self.members.find(&host.parse().expect("a name")).expect("a member").box_key.clone()
    }

    /// A letter as this member can make it, that says to be from `from`.
    fn letter(&self, from: &str, to: &str, id: &str, request: &Value) -> Vec<u8> {
        let home = |host: &str| self.members.find(&host.parse().expect("a name")).expect("a member").home_id;
        let ends = Ends {
            from: from.parse().expect("a name"),
            to: to.parse().expect("a name"),
            from_home: home(from),
            to_home: home(to),
        };
        let sent_at = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let age = Age { sent_at, age_ms: 0, ttl_ms: 600_000 };
        let header = Header::new(self.fleet.clone(), What::Req, id.parse().expect("an id"), ends, age);
        let part = LetterPart { name: "request.json".to_owned(), bytes: request.to_string().into_bytes() };
        Letter { header, parts: vec![part] }.seal(&self.keys, &self.box_of(to), 2 << 20).expect("a letter")
    }

    /// Puts bytes on a subject; whether the server has stored them.
    async fn put(&self, subject: String, bytes: Vec<u8>) -> bool {
        let answer = self.client.request(subject, bytes.into()).await;
        answer.is_ok_and(|answer| !String::from_utf8_lossy(&answer.payload).contains("error"))
    }

    /// Has the server itself put bytes on a subject: it is the reply of a question that this member may ask.
    async fn put_by_deputy(&self, subject: &str) {
        let question = format!("$JS.hub.API.DIRECT.GET.tk_test_hosts.tk.test.host.{}", self.name);
        let _ = self.client.publish_with_reply(question, subject.to_owned(), "".into()).await;
        let _ = self.client.flush().await;
    }
}

fn on_a_runtime<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

fn not_authentic(host: &TestHost) -> usize {
    let is_one = |line: &&Value| line["status"].as_str().is_some_and(|status| status.starts_with("not authentic"));
    host.audit().iter().filter(is_one).count()
}

/// Three hosts, of whom `b` lets `a` see views, and `m` has no bridge any more: its keys are in other hands.
fn with_mallory() -> Option<TestFleet> {
    let fleet = TestFleet::new(&["a", "b", "m"])?;
    fleet.host("b").accept("a", &["view"]);
    fleet.host("m").kill_bridge();
    Some(fleet)
}

#[test]
fn letters_that_it_forges_replays_and_relabels_do_nothing() {
    let Some(fleet) = TestFleet::new(&["a", "b", "m"]) else { return };
    let (a, b, m) = (fleet.host("a"), fleet.host("b"), fleet.host("m"));
    b.accept("a", &["send"]);
    let agent = b.stage.agent("kai");
    let words = "nobody but a may type this";
    // Its own bridge must not take part.
    m.kill_bridge();
    on_a_runtime(async {
        let mallory = Mallory::of(m).await;
        let request = text(&agent, words);
        let as_a = mallory.letter("a", "b", "forged", &request);
        // The server keeps it from writing in another one's name.
        assert!(!mallory.put("tk.test.box.b.a.req".to_owned(), as_a.clone()).await, "it may not write as a");
        // In its own name: a letter that says to be from a, garbage, much garbage, and a letter of its own.
        assert!(mallory.put("tk.test.box.b.m.req".to_owned(), as_a).await);
        assert!(mallory.put("tk.test.box.b.m.req".to_owned(), b"garbage".to_vec()).await);
        assert!(mallory.put("tk.test.box.b.m.req".to_owned(), vec![7; 1_900_000]).await);
        assert!(mallory.put("tk.test.box.b.m.res".to_owned(), vec![7; 1_000]).await);
        let own = mallory.letter("m", "b", "own", &request);
        assert!(mallory.put("tk.test.box.b.m.req".to_owned(), own.clone()).await);
        // What b answers it, sent back to b: the seal is symmetric.
        assert!(mallory.put("tk.test.box.b.m.res".to_owned(), own).await);
        // By the server as deputy, on the subject of a: bytes of its own roster, which no key of a has sealed.
        mallory.put_by_deputy("tk.test.box.b.a.req").await;
    });
    b.until("all of it is noted", || not_authentic(b) >= 5);
    b.until("its own letter was refused", || b.audit().iter().any(|line| line["status"] == "403 not_accepted"));
    assert_eq!(a.ask("s1", "b", &text(&agent, "a asks"))["result"]["verdict"], "delivered", "b serves on");
    assert_eq!(b.times_typed(&agent, &[words.to_owned(), "a asks".to_owned()]), [0, 1]);
    tally::add(tally::INPUTS, 8);
}

#[test]
fn what_it_writes_over_rosters_is_seen_and_stops_nobody() {
    let Some(fleet) = with_mallory() else { return };
    let (a, b, m) = (fleet.host("a"), fleet.host("b"), fleet.host("m"));
    on_a_runtime(async {
        let mallory = Mallory::of(m).await;
        assert!(!mallory.put("tk.test.host.b".to_owned(), b"scribble".to_vec()).await, "it may not write there itself");
        for number in 0..20 {
            mallory.put_by_deputy("tk.test.host.b").await;
            mallory.put_by_deputy("tk.test.host._fleet").await;
            if number % 5 == 0 {
                let answer = a.ask(&format!("v{number}"), "b", &json!({"kind": "view", "of": "agents"}));
                assert_eq!(answer["status"], 200, "{answer}");
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    });
    b.until("b has written its roster again", || b.bridge_view()["lease"] == "held");
    let written_over = |line: &Value| line["kind"] == "roster";
    println!("written over {} times", b.audit().iter().filter(|line| written_over(line)).count());
    assert_eq!(a.ask("last", "b", &json!({"kind": "view", "of": "agents"}))["status"], 200);
}

/// What the server lets a member do beside what it needs. It is printed, for it differs between servers; none of it may
/// be authentic, or stop others for long.
#[test]
fn the_server_lets_a_member_do_little_else() {
    let Some(fleet) = with_mallory() else { return };
    let (a, m) = (fleet.host("a"), fleet.host("m"));
    on_a_runtime(async {
        let mallory = Mallory::of(m).await;
        let calls: [(&str, &str, Value); 12] = [
            ("delete the box", "STREAM.DELETE.tk_test_box", json!({})),
            ("purge the box", "STREAM.PURGE.tk_test_box", json!({})),
            ("purge the rosters", "STREAM.PURGE.tk_test_hosts", json!({})),
            ("change the box", "STREAM.UPDATE.tk_test_box", json!({"name": "tk_test_box", "subjects": ["x"]})),
            ("make a stream", "STREAM.CREATE.own", json!({"name": "own", "subjects": ["own.>"]})),
            ("read the box", "STREAM.MSG.GET.tk_test_box", json!({"seq": 1})),
            ("delete a letter", "STREAM.MSG.DELETE.tk_test_box", json!({"seq": 1})),
            ("make a consumer", "CONSUMER.CREATE.tk_test_box", json!({"stream_name": "tk_test_box", "config": {}})),
            ("delete b's consumer", "CONSUMER.DELETE.tk_test_box.b-req", json!({})),
            ("fetch b's letters", "CONSUMER.MSG.NEXT.tk_test_box.b-req", json!({"batch": 1, "no_wait": true})),
            ("read letters directly", "DIRECT.GET.tk_test_box", json!({"seq": 1})),
            ("list the streams", "STREAM.NAMES", json!({})),
        ];
        for (what, call, body) in &calls {
            for api in ["$JS.API", "$JS.hub.API"] {
                let allowed = mallory.put(format!("{api}.{call}"), body.to_string().into_bytes()).await;
                println!("{:<24} {api:<12} {}", what, if allowed { "allowed" } else { "refused" });
                assert!(!allowed, "a member may {what}");
            }
        }
        // Letters with headers that move streams, on subjects of its own.
        for (name, value) in
            [("Nats-Rollup", "all"), ("Nats-Rollup", "sub"), ("Nats-TTL", "1s"), ("Nats-Schedule", "@every 1s")]
        {
            let mut headers = HeaderMap::new();
            headers.insert(name, value);
            let answer = mallory.client.request_with_headers("tk.test.box.b.m.req", headers, "x".into()).await;
            let said = answer.map(|answer| String::from_utf8_lossy(&answer.payload).into_owned()).unwrap_or_default();
            println!("{name}: {value:<14} {said}");
        }
        for (way, subject) in [("_INBOX", "_INBOX.b.>"), ("box", "tk.test.box.b.>"), ("system", "$SYS.>")] {
            let mut heard = mallory.client.subscribe(subject).await.expect("the client takes it");
            a.ask(&format!("w-{way}"), "b", &json!({"kind": "view", "of": "agents"}));
            let next =
                tokio::time::timeout(Duration::from_millis(300), futures_util::StreamExt::next(&mut heard)).await;
            assert!(!matches!(next, Ok(Some(_))), "a member hears {subject}");
        }
    });
    assert_eq!(a.ask("last", "b", &json!({"kind": "view", "of": "agents"}))["status"], 200, "b serves on");
    tally::add(tally::INPUTS, 31);
}

/// What a member sends stands in answers that are kept for 30 days, and in the audit. A kind of half a megabyte filled
/// both.
#[test]
fn long_words_of_a_member_are_not_kept() {
    let Some(fleet) = TestFleet::new(&["b", "m"]) else { return };
    let (b, m) = (fleet.host("b"), fleet.host("m"));
    m.kill_bridge();
    on_a_runtime(async {
        let mallory = Mallory::of(m).await;
        let request = json!({"v": 1, "kind": "k".repeat(500_000)});
        let letter = mallory.letter("m", "b", "long", &request);
        assert!(mallory.put("tk.test.box.b.m.req".to_owned(), letter).await);
    });
    b.until("it is refused", || b.audit().iter().any(|line| line["id"] == "long" && line["dir"] == "out"));
    let kept = |file: &str| fs::metadata(b.files(file)).expect(file).len();
    assert!(
        kept("told/fleet.m.long.json") < 4_096 && kept("audit.jsonl") < 8_192,
        "{} {}",
        kept("told/fleet.m.long.json"),
        kept("audit.jsonl")
    );
    tally::add(tally::INPUTS, 1);
}

/// Each answer to a persona is kept as a file, as each refusal is. Refusals alone had a limit.
#[test]
fn a_member_fills_no_disk_by_asking_again_and_again() {
    let Some(fleet) = TestFleet::joined(&["b", "m"]) else { return };
    let (b, m) = (fleet.host("b"), fleet.host("m"));
    b.accept("m", &["personas"]);
    let told = b.files("told");
    let answer = |number: usize| told.join(format!("fleet.m.{number}.json"));
    (0..10_000).for_each(|number| fs::write(answer(number), "{}").expect("written"));
    [b, m].into_iter().for_each(TestHost::start_bridge);
    [b, m].into_iter().for_each(TestHost::until_serving);
    m.kill_bridge();
    on_a_runtime(async {
        let mallory = Mallory::of(m).await;
        for (id, kind) in [("put", "persona_put"), ("ask", "work_create")] {
            let request = json!({"v": 1, "kind": kind, "slug": "kai"});
            assert!(mallory.put("tk.test.box.b.m.req".to_owned(), mallory.letter("m", "b", id, &request)).await);
        }
    });
    let is_dropped = |line: &Value| line["status"].as_str().is_some_and(|status| status.starts_with("dropped"));
    b.until("both are dropped", || b.audit().iter().filter(|line| is_dropped(line)).count() == 2);
    assert_eq!(fs::read_dir(&told).expect("listed").count(), 10_000);
    tally::add(tally::INPUTS, 2);
}

/// A request stays for 7 days after its answer, with the files that came with it. Nothing else was a limit.
#[test]
fn a_host_that_asks_too_often_is_told_so_and_its_requests_fill_no_disk() {
    let Some(fleet) = TestFleet::joined(&["b", "m"]) else { return };
    let (b, m) = (fleet.host("b"), fleet.host("m"));
    b.accept("m", &["send", "view"]);
    let agent = b.stage.agent("kai");
    // Room for one small request is left, which counts as 4 KiB.
    let kept = b.files("in/fleet.m.before");
    fs::create_dir(&kept).expect("made");
    let large = fs::File::create(kept.join("handoff.md")).expect("made");
    large.set_len((256 << 20) - 4_096).expect("a hole");
    [b, m].into_iter().for_each(TestHost::start_bridge);
    [b, m].into_iter().for_each(TestHost::until_serving);
    assert_eq!(m.ask("last", "b", &text(&agent, "the last one"))["result"]["verdict"], "delivered");
    let refused = m.ask("more", "b", &text(&agent, "one more"));
    assert_eq!((&refused["status"], &refused["error"]["code"]), (&json!(429), &json!("too_many")), "{refused}");
    assert_eq!(m.ask("view", "b", &json!({"kind": "view", "of": "agents"}))["status"], 200, "a view is not kept");
    assert_eq!(b.times_typed(&agent, &["the last one".to_owned(), "one more".to_owned()]), [1, 0]);
    assert!(b.files("in/fleet.m.last").exists() && !b.files("in/fleet.m.more").exists());
    b.until("the operator is told", || b.bridge_view()["problems"][0]["about"] == "inbox");
    let noted = |line: &Value| line["id"] == "more" && line["status"] == "429 too_many";
    assert!(b.audit().iter().any(noted), "{:?}", b.audit());
    tally::add(tally::INPUTS, 1);
}

/// A server that takes hardly any bytes: neither the answer nor the refusal of a too long answer fits into a letter.
#[test]
fn an_answer_that_fits_into_no_letter_keeps_no_bridge_busy() {
    let small = |server: &NatsServer| {
        server.change("nats-server.conf", |text| text.replace("max_payload: 2MB", "max_payload: 17000"));
        server.start();
    };
    let Some(fleet) = TestFleet::made(&["b", "m"], 1, small) else { return };
    let (b, m) = (fleet.host("b"), fleet.host("m"));
    [b, m].into_iter().for_each(TestHost::start_bridge);
    [b, m].into_iter().for_each(TestHost::until_serving);
    m.kill_bridge();
    on_a_runtime(async {
        let mallory = Mallory::of(m).await;
        let letter = mallory.letter("m", "b", "one", &json!({"v": 1, "kind": "work_create"}));
        assert!(mallory.put("tk.test.box.b.m.req".to_owned(), letter).await);
    });
    b.until("it is refused", || b.audit().iter().any(|line| line["id"] == "one" && line["dir"] == "in"));
    std::thread::sleep(Duration::from_secs(1));
    let before = times_woken(b.bridge_pid());
    std::thread::sleep(Duration::from_secs(3));
    let woken = times_woken(b.bridge_pid()) - before;
    assert!(woken < 500, "{woken} times in 3 s");
    let log = fs::read_to_string(b.log_file()).expect("its log");
    assert!(log.contains("fits into a letter"), "{log}");
    tally::add(tally::INPUTS, 1);
}

/// How often the threads of a process have slept and were woken.
fn times_woken(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let status = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let count = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    status.filter_map(count).sum()
}

/// Letters as large as the server takes them, one after the other: others are served meanwhile, and the bridge holds
/// few of them at once.
#[test]
fn a_flood_of_large_letters_stops_nobody() {
    let Some(fleet) = with_mallory() else { return };
    let (a, b, m) = (fleet.host("a"), fleet.host("b"), fleet.host("m"));
    on_a_runtime(async {
        let mallory = Mallory::of(m).await;
        for number in 0..80 {
            let what = if number % 2 == 0 { "req" } else { "res" };
            let _ = mallory.put(format!("tk.test.box.b.m.{what}"), vec![7; 2_000_000]).await;
            if number % 20 == 0 {
                let answer = a.ask(&format!("f{number}"), "b", &json!({"kind": "view", "of": "agents"}));
                assert_eq!(answer["status"], 200, "{answer}");
            }
        }
    });
    b.until("all of it is noted", || not_authentic(b) >= 80);
    let peak = peak_kib(b.bridge_pid());
    println!("the bridge's memory at its peak: {} MiB", peak / 1024);
    assert!(peak < 128 * 1024, "{peak}");
    tally::add(tally::INPUTS, 80);
}
