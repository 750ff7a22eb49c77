"""A home in a fleet of three hosts, made of files: the host `attic` is away, and a thread answers requests to the others in
place of a bridge. How the page shows them, and what can be asked of them."""

import datetime
import json
import threading
import time

from chrome import CONTROL, ENTER, ESCAPE, TAB
from crowd import Crowd, an_id
from stage import check, until

AWAY_SINCE = "2026-11-20T20:00:00.000Z"
REFUSED = {"code": "not_accepted", "message": "box-1 does not accept agent_send from desk", "hint": "Ask its operator"}


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Fleet(Crowd):
    """The files, a `tasuki serve --all-hosts` over them, and what the bridge would do."""

    OPTIONS = ["--all-hosts"]

    def __init__(self, tasuki, folder):
        self.asked, self.ended, self.is_connected = [], threading.Event(), True
        super().__init__(tasuki, folder, handoffs=1, agents=1, items=0)

    def serve(self):
        for name in ["tmp", "requests", "results", "hosts"]:
            (self.home / "fleet" / name).mkdir(parents=True, mode=0o700)
        (self.home / "fleet").chmod(0o700)
        self.write("fleet/host.json", {"name": "desk", "fleet": {"name": "test"}})
        self.host("desk")
        self.host("attic", away_since=AWAY_SINCE, agents=[self.member("lea", 2)])
        self.box("idle")
        self.bridge()
        threading.Thread(target=self.run, daemon=True).start()
        super().serve()

    def member(self, slug, number, state="idle", **more):
        return {"agent_id": an_id("abroad", number), "persona": slug, "profile": "demo", "state": state, "context": 81, "since": AWAY_SINCE, **more}

    def box(self, state, **more):
        handoff = {"handoff_id": an_id("handoff abroad", 1), "agent_id": an_id("abroad", 1), "persona": "mia", "step": "writing", "since": AWAY_SINCE}
        error = {"error_id": an_id("error abroad", 1), "code": "document_missing", "at": AWAY_SINCE}
        anonymous = {"agent_id": an_id("abroad", 3), "persona": None, "profile": "claude", "state": "busy"}
        self.host("box-1", agents=[self.member("mia", 1, state), anonymous], handoffs=[handoff], errors=[error], **more)

    def host(self, name, **more):
        self.write(f"fleet/hosts/{name}.json", {
            "v": 1, "host": name, "home_id": an_id("home", name), "version": "0.1.0", "sidecar": {"state": "runs", "since": AWAY_SINCE},
            "told_at": now(), "seen_at": now(), "authentic": True, **more,
        })

    def bridge(self):
        server = "127.0.0.1:4222 2.12.7" if self.is_connected else None
        self.write("fleet/bridge.json", {"v": 1, "host": "desk", "pid": 1, "heartbeat": now(), "server": server, "hosts_seen_at": now()})

    def run(self):
        """Gives signs of life, and answers: texts are refused, everything else is done."""
        beaten = 0
        while not self.ended.wait(0.02):
            if time.monotonic() - beaten > 5:
                beaten = time.monotonic()
                self.bridge()
            for path in (self.home / "fleet/requests").glob("*.json"):
                dropped = json.loads(path.read_text())
                path.unlink()
                self.asked.append((dropped["to"], dropped["request"]))
                said = {"v": 1, "host": dropped["to"], "request_id": path.stem, "kind": dropped["request"]["kind"], "at": now()}
                if dropped["request"]["kind"] == "agent_send":
                    said |= {"status": 403, "ok": False, "error": REFUSED}
                else:
                    said |= {"status": 200, "ok": True, "result": {"status": "initiated", "handoff_id": an_id("handoff abroad", 2)}}
                self.write(f"fleet/results/{path.stem}.json", said)

    def close(self):
        self.ended.set()
        super().close()


def card(name):
    return f'#hosts > li[data-id="{name}"]'


def hosts(fleet, browser, look):
    """Three hosts, each with its state; what is away is grey, and has its age. By keys and by buttons something is asked of
    the host that is live."""
    browser.enter(fleet.url, fleet.token)
    until("all hosts are shown", lambda: browser.js("return [...document.querySelectorAll('#hosts > li')].map((e) => e.dataset.id).join()") == "attic,box-1,desk")
    states = [browser.text(f"{card(name)} [data-part=state]") for name in ("attic", "box-1", "desk")]
    check(states == ["away", "live", "live"], f"the states are {states}")
    check(browser.has(f"{card('attic')}.stale") and not browser.has(f"{card('box-1')}.stale"), "the wrong host is grey")
    check("Away since" in browser.text(f"{card('attic')} [data-part=age]"), "its age is not told")
    about = browser.text(f"{card('box-1')} [data-part=about]")
    check("sidecar runs" in about and "2 agents" in about and "1 open handoff" in about and "1 error" in about, about)
    look("the list of hosts")
    browser.keys("6")
    check(browser.focus() == "hosts-section", f"the key for hosts leads to {browser.focus()}")
    browser.keys("jj" + ENTER)
    check(browser.focus() == "hosts box-1 name", f"the keyboard is at {browser.focus()}")
    mia = f'{card("box-1")} [data-part=agents] > li[data-id="{an_id("abroad", 1)}"]'
    until("its agents are shown", lambda: "mia" in browser.text(mia) and "context 81 %" in browser.text(mia))
    check(browser.has(f'{card("box-1")} [data-part=agents] > li[data-id="{an_id("abroad", 3)}"] [data-part=send]:disabled'), "an agent without a persona can be sent a text")
    check("document missing" in browser.text(f"{card('box-1')} [data-part=errors]"), "its errors are not shown")
    asked(fleet, browser, mia)
    look("an opened host")
    gone_while_typing(fleet, browser, mia)
    changes(fleet, browser, mia, look)


def asked(fleet, browser, mia):
    """A text, which that host does not accept; a handoff; and the end of one, by the keyboard alone."""
    browser.click(f"{mia} [data-part=send]")
    browser.keys("run the tests")
    browser.keys(ENTER, CONTROL)
    says = f"{mia} [data-part=send-form] .says"
    until("the refusal is shown", lambda: "does not accept agent_send from desk. Ask its operator" in browser.text(says))
    check(fleet.asked[-1][0] == "box-1" and fleet.asked[-1][1]["text"] == "run the tests", f"asked for otherwise: {fleet.asked[-1]}")
    browser.click(f"{mia} [data-part=open]")
    browser.keys("the context is full" + TAB + TAB + ENTER)
    until("it has begun", lambda: "has begun on box-1" in browser.text("#notices"))
    check(fleet.asked[-1][1] == {"v": 1, "kind": "handoff", "agent_id": an_id("abroad", 1), "reason": "the context is full"}, f"{fleet.asked[-1]}")
    browser.js("document.querySelector(arguments[0]).focus()", f"{card('box-1')} [data-part=handoffs] [data-part=cancel]")
    browser.keys(ENTER)
    until("it asks first", lambda: browser.has("#sure[open]"))
    browser.keys("y")
    until("it is cancelled", lambda: "is cancelled" in browser.text("#notices"))
    check(fleet.asked[-1] == ("box-1", {"v": 1, "kind": "handoff_cancel", "handoff_id": an_id("handoff abroad", 1)}), f"{fleet.asked[-1]}")


def gone_while_typing(fleet, browser, mia):
    """What is typed for an agent stays when that host no longer tells of the agent, until it is sent or closed."""
    # The text of the request that was refused is still in the form.
    field = f"{mia} [data-part=send-form] textarea"
    text = browser.js("return document.querySelector(arguments[0]).value", field)
    check(text == "run the tests" and browser.has(f"{mia} [data-part=send-form]:not([hidden])"), f"the typed text is {text!r}")
    browser.js("document.querySelector(arguments[0]).focus()", field)
    fleet.host("box-1")
    until("its row says so", lambda: "no longer in the list" in browser.text(f"{mia} [data-part=gone]"))
    until("the others are gone", lambda: browser.js("return document.querySelectorAll(arguments[0]).length", f"{card('box-1')} .entries > li") == 1)
    check(browser.focus() == "hosts box-1 text" and browser.js("return document.activeElement.value") == text, f"the keyboard is at {browser.focus()}")
    check(browser.has(f"{card('box-1')} [data-part=no-agents][hidden]"), "it is said that there is no agent")
    fleet.box("idle")
    until("it is back", lambda: browser.has(f"{mia}:not([data-gone])"))
    fleet.host("box-1")
    until("it has gone again", lambda: browser.has(f"{mia}[data-gone]"))
    browser.keys(ESCAPE)
    until("it goes when its form is closed", lambda: not browser.has(mia))
    check(browser.has(f"{card('box-1')} [data-part=no-agents]:not([hidden])"), "the list is empty, and nothing says so")
    check(browser.focus() == "hosts box-1 hosts-box-1", f"its row has gone, and the keyboard is at {browser.focus()}")
    fleet.box("idle")
    until("it is back", lambda: browser.has(mia))


def changes(fleet, browser, mia, look):
    """What changes is shown by itself: an agent's state, a host that is away, and that nobody here knows."""
    fleet.box("busy")
    until("the agent is busy", lambda: browser.text(f"{mia} [data-part=state]") == "busy")
    fleet.box("busy", away_since=AWAY_SINCE)
    until("the host is away", lambda: browser.has(f"{card('box-1')}.stale"))
    until("nothing can be asked of it", lambda: browser.has(f"{mia} [data-part=send]:disabled"))
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        look(f"a host that is away, in {scheme}")
    browser.scheme(None)
    fleet.is_connected = False
    fleet.bridge()
    until("nobody here knows", lambda: browser.text(f"{card('desk')} [data-part=state]") == "unknown")
    check("bridge on this machine does not run or reaches no server" in browser.text(f"{card('desk')} [data-part=age]"), "it is not said why")
    look("hosts of which nobody here knows")
    print("browser: three hosts of a fleet, one of them away; a text that is refused, a handoff, and its end", flush=True)
