"""A home made of files, with very many agents, handoffs and work items: how the page looks and how fast it is with them."""

import datetime
import json
import os
import statistics
import subprocess
import threading
import time
import uuid

from chrome import ENTER, TAB
from stage import FOREIGN, check, until

STEPS = ["waiting", "instructing", "writing", "checking", "recording", "ending", "starting", "priming", "briefing", "reading"]
NAMES = ["kai", "mia", "lea", "noah", "ada", "otto", "ines", "jun", "vera", "tom"]
BEGAN = datetime.datetime(2026, 11, 20, 20, 0, tzinfo=datetime.timezone.utc)
REASONS = ["the context is nearly full", "the refactoring of the parser is done; the tests of the printer come next", "a fresh look is needed"]
TITLES = ["Sew a red sash", "The export forgets the time zone of items that were imported", "Write the story of the login", "Check the licences"]
DOCUMENT = "# Handoff\n\n## State\n\nThe parser is done, `cargo test` passes.\n\n- next: the printer\n- then: the guide\n"


def at(minutes):
    return (BEGAN + datetime.timedelta(minutes=minutes)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def an_id(kind, number):
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{kind} {number}"))


class Crowd:
    """The files, and a `tasuki serve` over them."""

    OPTIONS = []

    def __init__(self, tasuki, folder, handoffs=300, agents=200, items=40):
        self.tasuki, self.home = tasuki, folder / "crowd"
        for name in ["spool/tmp", "spool/requests", "spool/results", "spool/errors", "view/agents", "view/handoffs", "view/work/open"]:
            (self.home / name).mkdir(parents=True, mode=0o700)
        for path in [self.home, *self.home.rglob("*")]:
            path.chmod(0o700)
        self.seq, self.handoffs, self.agents = 0, [], []
        self.is_over = threading.Event()
        threading.Thread(target=self.beat, daemon=True).start()
        for number in range(agents):
            self.agent(number)
        for number in range(handoffs):
            self.handoff(number, agents)
        for number in range(items):
            self.item(number)
        self.error(0)
        self.journal({"type": "error"})
        self.serve()

    def write(self, name, value):
        path = self.home / name
        scratch = path.with_suffix(".tmp")
        scratch.write_text(json.dumps(value))
        scratch.rename(path)

    def beat(self):
        """A heartbeat every few seconds."""
        while True:
            now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
            self.write("view/sidecar.json", {"v": 1, "pid": 1, "version": "0", "heartbeat": now, "state": "running"})
            if self.is_over.wait(5):
                return

    def agent(self, number, state=None, percent=None):
        state = state or ["idle", "busy", "busy", "blocked"][number % 4]
        view = {
            "v": 1, "agent_id": an_id("agent", number), "persona_slug": NAMES[number % len(NAMES)], "profile": "demo", "pane": f"%{number}",
            "pid": 1000 + number, "tmux_session": "night", "cwd": f"/srv/work/project-{number % 7}", "state": state,
            "previous_agent_id": an_id("agent", number - 10) if number % 3 == 1 and number >= 10 else None, "created_at": at(number),
            "registered_at": at(number), "started_by_tasuki": True, "hooks": "seen", "primed": True,
            "context": {"used": 1000 * number, "window": 200000, "percent": number % 100 if percent is None else percent}, "handoff_suggested": number % 100 > 90,
        }
        self.write(f"view/agents/{view['agent_id']}.json", view)
        if number == len(self.agents):
            self.agents.append(view["agent_id"])

    def handoff(self, number, agents, step=None):
        step = step or ("writing" if number % 40 == 7 else "checking" if number % 75 == 9 else "failed" if number % 50 == 3 else "done")
        passed = STEPS[: STEPS.index(step)] if step in STEPS else STEPS[:3] if step == "failed" else STEPS
        steps = [{"step": name, "entered_at": at(number + place / 10), "left_at": at(number + (place + 1) / 10)} for place, name in enumerate(passed)]
        held = step == "checking"
        view = {
            "v": 1, "handoff_id": an_id("handoff", number), "agent_id": an_id("agent", number % agents), "persona_slug": NAMES[number % len(NAMES)],
            "reason": REASONS[number % len(REASONS)], "focus": "the flaky test", "tasks": ["finish the printer"], "author": "agent_file",
            "file_path": f"{self.home}/data/personas/{NAMES[number % len(NAMES)]}/handoffs/{number}.md", "created_at": at(number),
            "step": step, "steps": steps + ([] if step in ("done", "failed") else [{"step": step, "entered_at": at(number + 1), "left_at": None}]),
            "held_since": at(number + 2) if held else None, "bytes": len(DOCUMENT) if step == "done" else None,
            "document": {"bytes": 812, "at": at(number + 1)} if held else None, "reworks": 0, "generation": 1 + number % 4,
            "faults": [{"code": "section_empty", "grade": "fix", "line": 7, "said": "The section “Next” is empty"}] if held else [],
            "error": {"error_id": an_id("error", number), "step": "writing", "code": "document_missing", "message": "The agent has ended its turn without a document",
                      "hint": "Look at its pane, then retry"} if step == "failed" else None,
            "successor_id": an_id("agent", (number + 1) % agents) if step == "done" else None,
            "verdicts": {"instruction": {"delivery_id": "1", "verdict": "delivered", "at": at(number)}, "priming": None, "briefing": None},
        }
        self.write(f"view/handoffs/{view['handoff_id']}.json", view)
        if number == len(self.handoffs):
            self.handoffs.append(view["handoff_id"])
        return view

    def item(self, number):
        status = ["ready", "ready", "claimed", "escalated"][number % 4]
        item = an_id("item", number)
        view = {
            "v": 1, "item_id": item, "type": ["task", "story", "bug"][number % 3], "title": TITLES[number % len(TITLES)], "description": "In full.",
            "status": status, "project_id": item, "children": [], "priority": ["normal", "high", "low", "urgent"][number % 4],
            "claimed_by": an_id("agent", number) if status == "claimed" else None, "claimed_at": at(number) if status == "claimed" else None,
            "metadata": {}, "failed_children": [], "comments": [{"comment_id": "1", "at": at(number), "author": "human", "text": "See the notes of Monday.", "system": False}],
            "history": [{"at": at(number), "action": "created", "by": "human", "from": None, "to": "ready", "children": []}], "told": [],
            "created_at": at(number), "created_by": "human", "escalation_reason": "no access to the database" if status == "escalated" else None,
        }
        self.write(f"view/work/{item}.json", view)
        (self.home / f"view/work/open/{item}").touch()

    def error(self, number, **more):
        self.write(f"spool/errors/{an_id('error', number)}.json", {
            "v": 1, "error_id": an_id("error", number), "at": at(number), "code": "document_missing", "step": "writing", "handoff_id": an_id("handoff", 3),
            "agent_id": None, "message": "The agent has ended its turn without a document", "hint": "Look at its pane, then retry: tasuki retry 1a2b", **more,
        })

    def journal(self, *lines):
        with open(self.home / "spool/journal.jsonl", "a", encoding="utf-8") as journal:
            for line in lines:
                self.seq += 1
                journal.write(json.dumps({"seq": self.seq, "at": at(self.seq), **line}) + "\n")

    def serve(self):
        env = {name: value for name, value in os.environ.items() if name not in FOREIGN} | {"TASUKI_HOME": str(self.home)}
        self.server = subprocess.Popen(
            [self.tasuki, "serve", "--listen", "127.0.0.1:0", "--json", *self.OPTIONS], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        self.url = json.loads(self.server.stdout.readline())["url"]
        self.token = (self.home / "state/serve.token").read_text().strip()

    def close(self):
        self.is_over.set()
        self.server.terminate()
        self.server.wait(20)


MEASURED = ["ScriptDuration", "LayoutDuration", "RecalcStyleDuration"]
EVENTS = 40
LIMIT_MS = 16


def metrics(browser):
    found = {one["name"]: one["value"] for one in browser.cdp("Performance.getMetrics")["metrics"]}
    return [1000 * found[name] for name in MEASURED]


def measure(crowd, browser):
    """The time that one event takes on the page: that a step of a handoff or an agent's state has changed."""
    browser.cdp("Performance.enable")
    browser.cdp("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    began = time.monotonic()
    browser.enter(crowd.url, crowd.token)
    until("all are shown", lambda: browser.js("return document.querySelectorAll('#handoffs > li').length") == len(crowd.handoffs))
    check(browser.js("return document.querySelectorAll('#agents > li').length") == len(crowd.agents), "not all agents are shown")
    spent = 1000 * (time.monotonic() - began)
    every = []
    for number in range(EVENTS):
        handoff, agent = 7 + 40 * (number % 7), number % len(crowd.agents)
        step = STEPS[(number + 3) % len(STEPS)]
        before = metrics(browser)
        crowd.handoff(handoff, len(crowd.agents), step)
        crowd.agent(agent, "starting")
        crowd.journal({"type": "handoff.step", "handoff_id": an_id("handoff", handoff), "agent_id": an_id("agent", agent), "step": step})
        until("the agent has changed", lambda: browser.text(f"#agents > li[data-id='{an_id('agent', agent)}'] [data-part=state]") == "starting")
        until("the step is shown", lambda: browser.text(f"#handoffs > li[data-id='{an_id('handoff', handoff)}'] [data-part=state]") == step)
        took = [after - earlier for after, earlier in zip(metrics(browser), before)]
        every.append(took)
    said = ", ".join(f"{name} {statistics.mean(all):.1f} ms (at most {max(all):.1f})" for name, all in zip(MEASURED, zip(*every)))
    print(f"browser: {len(crowd.handoffs)} handoffs and {len(crowd.agents)} agents, loaded in {spent:.0f} ms; one event: {said}", flush=True)
    worst = max(scripting for scripting, *_ in every)
    check(worst < LIMIT_MS, f"an event took {worst:.1f} ms of scripting")


# Answers for `GET /api/needs`, whatever the server has: what a test says, and how often it was asked for.
NEEDS = """
const real = window.fetch;
window.needs = [];
window.asked = 0;
window.fetch = (path, options) => {
  if (path !== "/api/needs") return real(path, options);
  window.asked += 1;
  return Promise.resolve(new Response(JSON.stringify({needs: window.needs}), {headers: {"Content-Type": "application/json"}}));
};
"""


def needs(crowd, browser, look):
    """What needs a person stands at the top, with its count in the page's title; a burst of events asks for it a few times."""
    script = browser.cdp("Page.addScriptToEvaluateOnNewDocument", source=NEEDS)["identifier"]
    browser.enter(crowd.url, crowd.token)
    until("nothing needs a person", lambda: browser.has("#no-needs:not([hidden])"))
    check(browser.js("return document.title") == "tasuki", "the title counts nothing")
    handoff = crowd.handoffs[7]
    entries = [
        {"what": "held", "handoff_id": handoff, "since": at(9), "said": "its document has <b>1</b> fault", "command": f"tasuki accept {handoff[:8]}"},
        {"what": "dialog", "agent_id": crowd.agents[3], "since": at(5), "said": "ada waits at a dialog", "command": "tasuki top"},
    ]
    before = browser.js("window.needs = arguments[0]; return window.asked", entries)
    crowd.journal(*({"type": "agent.state", "agent_id": crowd.agents[3], "state": "blocked"} for _ in range(200)))
    until("the title counts them", lambda: browser.js("return document.title") == "(2) tasuki")
    asked = browser.js("return window.asked") - before
    check(asked <= 3, f"200 events asked {asked} times")
    check("<b>1</b>" in browser.text("#needs-list li"), "a text became HTML")
    look("the list of what needs a person")
    browser.keys("0" + TAB + ENTER)
    until("the link leads there", lambda: browser.focus() == f"handoffs {handoff} name")
    failed = {"what": "error", "agent_id": crowd.agents[3], "since": at(5), "said": "its turn has failed", "command": "tasuki errors"}
    browser.js("window.needs = arguments[0]", [{**failed, "error_id": an_id("error", number)} for number in range(3)])
    shown = "return [document.querySelectorAll('#needs-list > li').length, document.title]"
    for number in range(3):
        asked = browser.js("return window.asked")
        crowd.journal({"type": "agent.state", "agent_id": crowd.agents[3], "state": "blocked"})
        until("it is asked for again", lambda: browser.js("return window.asked") > asked)
        until("three of one agent are three", lambda: browser.js(shown) == [3, "(3) tasuki"], 10)
    browser.js("window.needs = []")
    crowd.journal({"type": "agent.state", "agent_id": crowd.agents[3], "state": "blocked"})
    until("the title counts nothing", lambda: browser.js("return document.title") == "tasuki")
    browser.cdp("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def silently(crowd, browser):
    """What changes without a line of the journal is shown: an agent's context, and an error that was dismissed elsewhere."""
    browser.enter(crowd.url, crowd.token)
    agent = f"#agents > li[data-id='{crowd.agents[5]}'] [data-part=context]"
    until("all are shown", lambda: browser.has("#errors:not([hidden])") and browser.has(agent))
    until("the title counts them", lambda: browser.js("return document.title").startswith("("))
    before = browser.js("return document.title")
    crowd.agent(5, percent=77)
    until("the context is shown", lambda: "77 %" in browser.text(agent), 10)
    shown = "return [document.querySelectorAll('#error-list > li').length, document.title]"
    crowd.error(1, code="turn_failed", step=None, handoff_id=None, agent_id=crowd.agents[5])
    until("the error comes", lambda: browser.js(shown)[0] == 2 and browser.js(shown)[1] not in (before, "tasuki"), 10)
    (crowd.home / f"spool/errors/{an_id('error', 1)}.json").unlink()
    until("it goes, and nothing of it needs a person", lambda: browser.js(shown) == [1, before], 10)


def retried(crowd, browser):
    """After a retry the steps of the earlier try are not shown as passed, until they are passed again."""
    number = 7
    card = f"#handoffs > li[data-id='{crowd.handoffs[number]}']"
    passed = lambda: browser.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.dataset.step)", f"{card} li.passed")
    spans = lambda names, last=None: [{"step": name, "entered_at": at(number), "left_at": at(number + 1)} for name in names] + \
        ([{"step": last, "entered_at": at(number), "left_at": None}] if last else [])
    first = spans([*STEPS, "failed"])

    def shows(step, steps, expected):
        view = crowd.handoff(number, len(crowd.agents), step)
        crowd.write(f"view/handoffs/{view['handoff_id']}.json", view | {"steps": steps})
        crowd.journal({"type": "handoff.step", "handoff_id": view["handoff_id"], "agent_id": view["agent_id"], "step": step})
        until(f"it is {step}", lambda: browser.text(f"{card} [data-part=state]") == step)
        until(f"{expected} are passed at {step}", lambda: passed() == expected, 10)

    browser.enter(crowd.url, crowd.token)
    browser.js("location.hash = `#/handoffs/${arguments[0]}`", crowd.handoffs[number])
    until("its card is open", lambda: browser.has(f"{card} .steps"))
    shows("starting", first + spans([], "starting"), STEPS[:6])
    shows("briefing", first + spans(STEPS[6:8], "briefing"), STEPS[:8])
    shows("writing", spans(STEPS[:4]) + spans([], "writing"), STEPS[:2])
    shows("done", first + spans([*STEPS[6:], "done"]), STEPS)


def dates(crowd, browser):
    """A time of another day is shown with its date, one of today without; and when a new day begins, that one gets its date."""
    now = datetime.datetime.now(datetime.timezone.utc)
    before = now - datetime.timedelta(days=3)
    [new, old] = [8, 9]
    for number, time in ((new, now), (old, before)):
        view = crowd.handoff(number, len(crowd.agents))
        since = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        crowd.write(f"view/handoffs/{view['handoff_id']}.json", view | {"created_at": since, "held_since": since if number == old else None})
    browser.enter(crowd.url, crowd.token)
    card = lambda number: f"#handoffs > li[data-id='{crowd.handoffs[number]}']"
    about = lambda number: browser.text(f"{card(number)} [data-part=about]")
    day = lambda time: time.astimezone().strftime("%b %-d, %Y")
    until("both are shown", lambda: about(new) and about(old))
    check(day(before) in about(old), f"no date: {about(old)}")
    check(day(now) not in about(new), f"a date of today: {about(new)}")
    browser.js("location.hash = `#/handoffs/${arguments[0]}`", crowd.handoffs[old])
    until("it says since when it waits", lambda: f"Waits for you since {day(before)}" in browser.text(f"{card(old)} [data-part=held-says]"), 10)
    browser.js("window.now = Date.now; Date.now = () => window.now() + 86400000")
    until("today's date is shown on the next day", lambda: day(now) in about(new), 20)
    browser.js("Date.now = window.now")
    for number in (new, old):
        crowd.handoff(number, len(crowd.agents))


def old_errors(crowd, browser):
    """Of very many errors the newest are shown, and the page says so. A link leads to an older one all the same, and only an
    error that the server does not have either was dismissed."""
    many = 130
    path = lambda number: crowd.home / f"spool/errors/{an_id('error', number)}.json"
    for number in range(1, many):
        crowd.error(number)
        os.utime(path(number), (BEGAN.timestamp(), BEGAN.timestamp() - number))
    browser.enter(crowd.url, crowd.token)
    title = lambda: browser.text("#errors-title")
    until("the newest are shown", lambda: title() == "Errors (newest 100)" and browser.js("return document.querySelectorAll('#error-list > li').length") == 100)
    gone = an_id("error", many)
    browser.js("location.hash = `#/errors/${arguments[0]}`", gone)
    until("an error that is not there was dismissed", lambda: "This error was dismissed." in browser.text("#notices"))
    oldest = an_id("error", many - 1)
    browser.js("location.hash = `#/errors/${arguments[0]}`", oldest[:13])
    until("the link leads to the oldest", lambda: browser.focus() == f"errors {oldest} name" and browser.has(f"#errors-{oldest}[data-open]"))
    check(browser.text("#notices").count("was dismissed") == 1, "an error that is there is said to be dismissed")
    check(title() == f"Errors ({many})", f"the heading is {title()}")
    for number in range(1, many):
        path(number).unlink()
    until("they go", lambda: title() == "Errors (1)")


def pictures(crowd, browser, folder, look):
    """The page at three widths, light and dark: nothing is wider than its window. With a folder, a picture of each."""
    browser.enter(crowd.url, crowd.token)
    until("all are shown", lambda: browser.has("#handoffs > li") and browser.has("#work-ready > li"))
    for kind, one in [("handoffs", crowd.handoffs[9]), ("handoffs", crowd.handoffs[3]), ("work", an_id("item", 3)), ("agents", crowd.agents[4])]:
        browser.js("location.hash = `#/${arguments[0]}/${arguments[1]}`", kind, one)
        until("the link opens its card", lambda: browser.focus() == f"{kind} {one} name")
    browser.keys("h")
    browser.click(f'#agents > li[data-id="{crowd.agents[4]}"] .more summary')
    for width in (400, 1280, 2560):
        browser.wide(width, 1400)
        wide = browser.js("return [document.documentElement.scrollWidth, innerWidth]")
        check(wide[0] <= wide[1] == width, f"wider than its window: {wide}")
        grounds = set()
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            grounds.add(browser.js("return getComputedStyle(document.body).backgroundColor"))
            look(f"the page in {scheme} at {width} pixels")
            if folder:
                folder.mkdir(parents=True, exist_ok=True)
                browser.js("scrollTo(0, 0)")
                browser.picture(folder / f"page-{width}-{scheme}.png")
        check(len(grounds) == 2, f"light and dark look alike: {grounds}")
    browser.scheme(None)
    browser.cdp("Emulation.clearDeviceMetricsOverride")
