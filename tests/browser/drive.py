#!/usr/bin/env python3
"""Drives headless Chromium through the page of a real `tasuki serve`, over a real sidecar with demo agents in a private
tmux server: a handoff by its button, the steps as they pass, an error as it appears. Python's standard library only; the
browser is spoken to by chromedriver's own WebDriver protocol. With --schemathesis it also lets that try the OpenAPI
document against the same server. Called by scripts/browser."""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PATIENCE = 180
FOREIGN = ["TMUX", "TMUX_PANE", "TASUKI_HOME", "TASUKI_TMUX", "TASUKI_AGENT_ID", "TASUKI_PERSONA"]
HOSTILE = '<b id="evil">context</b> is "full" & <img src=x onerror=document.title=1>'
STEPS = ["waiting", "instructing", "writing", "checking", "recording", "ending", "starting", "priming", "briefing", "reading"]


def until(what, look, patience=PATIENCE):
    """Waits until `look` finds something, and gives it."""
    end = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.05)


def check(is_so, what):
    if not is_so:
        raise AssertionError(what)


class Stage:
    """A tmux server, a home, a sidecar, agents and a server. All of it ends with `close`."""

    def __init__(self, tasuki, folder):
        self.tasuki, self.folder, self.children = tasuki, folder, []
        self.home, self.socket, self.faults_file = folder / "home", folder / "tmux", folder / "faults"
        self.home.mkdir(mode=0o700)
        (folder / "work").mkdir()
        (self.home / "config.toml").write_text('[limits]\ninstructing = "6s"\n')
        self.env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        self.env |= {"TASUKI_HOME": str(self.home), "TASUKI_TMUX": str(self.socket), "TASUKI_LOG": "warn"}
        self.faults("")
        self.tmux("new-session", "-d", "-s", "user", "-x", "120", "-y", "40", "exec cat")
        self.tmux("set-environment", "-g", "TASUKI_DEMO_FAULTS_FILE", str(self.faults_file))
        self.start("run")
        until("the sidecar beats", lambda: (self.home / "view/sidecar.json").exists())

    def tmux(self, *args):
        command = ["tmux", "-u", "-S", str(self.socket), "-f", "/dev/null", *args]
        subprocess.run(command, env=self.env, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)

    def start(self, *args, **more):
        log = open(self.folder / f"{args[0]}.log", "wb")
        child = subprocess.Popen([self.tasuki, *args], env=self.env, stdin=subprocess.DEVNULL, stderr=log, **more)
        self.children.append(child)
        return child

    def run(self, *args):
        done = subprocess.run(
            [self.tasuki, *args, "--json"], env=self.env, cwd=self.folder / "work", stdin=subprocess.DEVNULL,
            capture_output=True, timeout=PATIENCE, check=False,
        )
        check(done.returncode == 0, f"tasuki {args}: {done.stderr.decode()}")
        return json.loads(done.stdout)

    def faults(self, lines):
        scratch = self.folder / "faults.new"
        scratch.write_text(f"slow_turn=1200\n{lines}\n")
        scratch.rename(self.faults_file)

    def agent(self, slug):
        self.run("persona", "new", slug, "--profile", "demo")
        return self.run("agent", "create", slug, "--cwd", str(self.folder / "work"))["agent_id"]

    def serve(self):
        ours, theirs = os.openpty()
        self.start("serve", "--listen", "127.0.0.1:0", stdout=theirs)
        os.close(theirs)
        said = os.fdopen(ours, "rb", buffering=0).readline().decode().strip()
        url, code = said.split("#code=")
        return url, code, (self.home / "state/serve.token").read_text().strip()

    def handoffs(self):
        return [json.loads(path.read_text()) for path in (self.home / "view/handoffs").glob("*.json")]

    def close(self):
        for child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
        for child in self.children:
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
        self.tmux("kill-server")


class Browser:
    """One window of headless Chromium."""

    def __init__(self, chromedriver, chromium, folder):
        self.driver = subprocess.Popen(
            [chromedriver, "--port=0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": str(folder)},
        )
        for line in self.driver.stdout:
            if port := re.search(rb"started successfully on port (\d+)", line):
                break
        self.base = f"http://127.0.0.1:{int(port[1])}"
        self.session = ""
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
            "--window-size=1100,900", f"--user-data-dir={folder / 'chromium'}",
        ]
        chrome = {"binary": chromium, "args": options}
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        url = self.base + self.session + path if self.session else self.base + path
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]) from error

    def open(self, url):
        self.ask("POST", "/url", {"url": url})

    def js(self, script, *args):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(args)})

    def cdp(self, command, **params):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def find(self, css):
        (key, value), *_ = self.ask("POST", "/element", {"using": "css selector", "value": css}).items()
        return f"/element/{value}"

    def click(self, css):
        self.ask("POST", f"{self.find(css)}/click", {})

    def type(self, css, text):
        self.ask("POST", f"{self.find(css)}/value", {"text": text})

    def has(self, css):
        return self.js("return document.querySelector(arguments[0]) !== null", css)

    def text(self, css):
        return self.js("const e = document.querySelector(arguments[0]); return e && e.innerText", css) or ""

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def close(self):
        try:
            if self.session:
                self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(20)


WATCH = """
window.passed = [];
const look = () => document.querySelectorAll("#handoffs li.here").forEach((node) => {
  if (window.passed.at(-1) !== node.dataset.step) window.passed.push(node.dataset.step);
});
new MutationObserver(look).observe(document.getElementById("handoffs"), {subtree: true, childList: true, attributes: true});
window.told = [];
new MutationObserver(() => window.told.push(document.getElementById("passing").textContent))
  .observe(document.getElementById("passing"), {childList: true});
"""


def login(browser, url):
    """Without the token the page shows nothing, and it refuses a wrong token."""
    browser.open(url)
    until("the login", lambda: browser.has("#login:not([hidden])"))
    check(browser.has("#main[hidden]"), "the page is shown without a token")
    browser.type("#token", "wrong")
    browser.click("#login button")
    until("a wrong token is refused", lambda: "does not match" in browser.text("#login-says"))


def hand_off(browser, agent, reason, focus):
    card = f'#agents > li[data-id="{agent}"]'
    until("the agent can be handed off", lambda: browser.has(f"{card} [data-part=open]:not(:disabled)"))
    browser.click(f"{card} [data-part=open]")
    focused = browser.js("return document.activeElement.name")
    check(focused == "reason", f"the keyboard is at {focused}, not at the reason")
    browser.type(f"{card} input[name=reason]", reason)
    browser.type(f"{card} input[name=focus]", focus)
    browser.click(f"{card} button[type=submit]")


def whole_handoff(stage, browser, agent, reason):
    """The button, the steps as they pass, the successor in the lineage; a hostile reason stays text."""
    browser.js(WATCH)
    hand_off(browser, agent, reason, "the flaky test")
    handoff = until("the handoff has begun", stage.handoffs)[0]
    card = f'#handoffs > li[data-id="{handoff["handoff_id"]}"]'
    until("it is done", lambda: browser.text(f"{card} [data-part=state]") == "done")
    passed = browser.js("return window.passed")
    check([step for step in STEPS if step in passed] == list(dict.fromkeys(passed)), f"out of order: {passed}")
    check({"writing", "priming"} <= set(passed) and len(passed) >= 5, f"the steps did not pass live: {passed}")
    check(any("writing" in line for line in browser.js("return window.told")), "the steps are not told aloud")
    marks = browser.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.dataset.step)", f"{card} li.passed")
    check(marks == STEPS, f"passed at the end: {marks}")
    view = next(one for one in stage.handoffs() if one["handoff_id"] == handoff["handoff_id"])
    check((view["reason"], view["focus"]) == (reason, "the flaky test"), f"asked for otherwise: {view}")
    check(reason in browser.text(f"{card} h3"), "the reason is not shown as it is")
    check(not browser.has("#evil") and not browser.has("#main img"), "a text became HTML")
    successor = view["successor_id"]
    until("the successor is shown", lambda: browser.has(f'#agents > li[data-id="{successor}"]'))
    until("the lineage is drawn", lambda: successor[:8] in browser.text("#lineage") and agent[:8] in browser.text("#lineage"))
    check(browser.has("#lineage path.tip"), "no line from the predecessor")
    return successor


def failure(stage, browser, agent):
    """An agent that writes no document: the error appears by itself, and goes when it is dismissed."""
    stage.faults("write_never")
    hand_off(browser, agent, "context is nearly full", "")
    until("an error appears", lambda: browser.has("#errors:not([hidden]) .card.error"))
    check("document_missing" in browser.text("#error-list"), browser.text("#error-list"))
    until("the step shows where", lambda: browser.has('#handoffs li.stopped[data-step="writing"]'))
    stage.faults("")


def accessible(browser, axe, what):
    """No rule of axe-core is broken, whatever its grade."""
    if axe is None:
        return
    browser.js(axe)
    ask = "return axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.map(" \
        "(one) => `${one.impact} ${one.id}: ${one.nodes.map((node) => node.html.slice(0, 200)).join(' | ')}`))"
    found = browser.js(ask)
    check(not found, f"{what} is not accessible: {found}")


def doubt(stage, browser, agent):
    """A text of which nobody knows whether it arrived: the page lets one say it. One that takes too long can be given up."""
    stage.faults("swallow_enter=1000")
    known = {one["handoff_id"] for one in stage.handoffs()}
    hand_off(browser, agent, "context is nearly full", "")
    handoff = until("it has begun", lambda: [one for one in stage.handoffs() if one["handoff_id"] not in known])[0]
    card = f'#handoffs > li[data-id="{handoff["handoff_id"]}"]'
    until("it is in doubt", lambda: browser.has(f"{card} [data-part=arrived]:not([hidden])"))
    check(browser.has(f"{card} [data-part=retry][hidden]"), "a plain retry is offered, which would be refused")
    stage.faults("")
    browser.click(f"{card} [data-part=abandon]")
    until("it is given up", lambda: browser.text(f"{card} [data-part=state]") == "cancelled")


def urgent(stage, browser, agent, faults):
    """An urgent handoff whose successor behaves so; its card, and its view as it is at the moment."""
    stage.faults(faults)
    begun = stage.run("handoff", agent, "--reason", HOSTILE, "--urgency", "immediate")
    view = lambda: next(one for one in stage.handoffs() if one["handoff_id"] == begun["handoff_id"])
    return f'#handoffs > li[data-id="{begun["handoff_id"]}"]', view


# Markdown, and what the page makes of it.
RENDERED = [
    ("---\ncheckpoint: 2\n---\n# A `b`\n### C", "<pre><code>checkpoint: 2</code></pre><h4>A <code>b</code></h4><h5>C</h5>"),
    ("**b** and *e* of some_long_name\\*", "<p><strong>b</strong> and <em>e</em> of some_long_name*</p>"),
    ("- a\n  - b\n- c\n\n3. d", "<ul><li><p>a</p><ul><li><p>b</p></li></ul></li><li><p>c</p></li></ul><ol start=\"3\"><li><p>d</p></li></ol>"),
    ("> q\n\n***\n```sh\n<b>&\n```", "<blockquote><p>q</p></blockquote><hr><pre><code>&lt;b&gt;&amp;</code></pre>"),
    ("| a | |\n|---|---|\n| `x` | 1\\|2 |", "<table><thead><tr><th>a</th><td></td></tr></thead><tbody><tr><td><code>x</code></td><td>1|2</td></tr></tbody></table>"),
    ("<img src=x onerror=alert(1)><!-- x -->", "<p>&lt;img src=x onerror=alert(1)&gt;&lt;!-- x --&gt;</p>"),
    ("![pic](https://evil.example/x.png)", "<p>pic (https://evil.example/x.png)</p>"),
    ("[a](javascript:alert(1)) [b](data:text/html,x) [c](../x.md)", "<p>a (javascript:alert(1)) b (data:text/html,x) c (../x.md)</p>"),
    ("[a](https://a.example/x_(y)) http://b.example/c.", '<p><a href="https://a.example/x_(y)" title="https://a.example/x_(y)" '
        'rel="noreferrer noopener" target="_blank">a</a> <a href="http://b.example/c" title="http://b.example/c" '
        'rel="noreferrer noopener" target="_blank">http://b.example/c</a>.</p>'),
    ("a\u202eb\u0007\u001b[2J", "<p>ab[2J</p>"),
]
# Texts that a careless reader would need minutes for, or could not read at all.
LONG = ["[" * 300000, "`a``b```c" * 30000, "*a _b ~~c " * 30000, "> " * 100000, "-\n" * 131072, "|" * 7000 + "\n" + "|-" * 3500 + "\n", "\n".join(" " * n + "- x" for n in range(700))]


def rendering(browser):
    """The Markdown of a document: no HTML of it, no image, no address but of the web; and nothing takes long."""
    render = "const box = document.createElement('div'); box.append(...rendered(arguments[0])); return box.innerHTML"
    for text, expected in RENDERED:
        made = browser.js(render, text)
        check(made == expected, f"{text!r} became {made!r}, not {expected!r}")
    for text in LONG:
        spent = browser.js("const from = performance.now(); rendered(arguments[0]); return performance.now() - from", text)
        check(spent < 5000, f"{text[:20]!r} took {spent} ms")
    more = browser.js("return rendered(arguments[0]).at(-1).textContent", "x\n\n" * 100000)
    check(more == "… more in the file", f"a long document ends in {more!r}")


def begun_with(stage, agent, flaw):
    """A handoff whose document has this flaw, and that waits for a person; its card."""
    stage.faults(f"flaw={flaw}")
    begun = stage.run("handoff", agent, "--reason", "context is nearly full", "--check", "hold")
    return begun["handoff_id"], f'#handoffs > li[data-id="{begun["handoff_id"]}"]'


def decided(stage, browser, axe):
    """A document with a fault: the page shows it, and a person lets the agent write it once more, or accepts it."""
    view = lambda handoff: next(one for one in stage.handoffs() if one["handoff_id"] == handoff)
    handoff, card = begun_with(stage, stage.agent("lea"), "headings")
    until("it waits for a person", lambda: browser.has(f"{card} [data-part=held]:not([hidden])"))
    check("Waits for you since" in browser.text(f"{card} [data-part=held-says]"), browser.text(card))
    check(len(view(handoff)["faults"]) == browser.js("return document.querySelectorAll(arguments[0]).length", f"{card} .faults li"), "not each fault is shown")
    until("the document is shown", lambda: browser.has(f"{card} .markdown h4"))
    check(not browser.has(f"{card} [data-part=accept]:not([hidden])"), "two buttons accept the document")
    accessible(browser, axe, "a card that waits for a decision")
    browser.type(f"{card} input[name=note]", "fill the sections")
    # By the keyboard alone.
    browser.type(f"{card} input[name=note]", "\ue007")
    until("the agent is asked", lambda: view(handoff)["reworks"] == 1)
    until("the handoff continues", lambda: browser.text(f"{card} [data-part=state]") == "done")
    check(browser.has(f"{card} [data-part=held][hidden]"), "there is nothing to decide any more")
    until("the document is read again", lambda: browser.has(f"{card} .markdown p"))
    check(browser.has(f"{card} [data-part=facts]:not([hidden])"), "the facts are not shown")
    handoff, card = begun_with(stage, view(handoff)["successor_id"], "headings")
    until("it waits too", lambda: browser.has(f"{card} [data-part=held]:not([hidden])"))
    browser.click(f"{card} [data-part=handoff_accept]")
    until("it is accepted", lambda: browser.text(f"{card} [data-part=state]") == "done")
    check(view(handoff)["reworks"] == 0, f"asked without need: {view(handoff)}")
    earlier = f"{card} [data-part=facts-list] a"
    browser.click(f"{card} [data-part=facts] summary")
    check(browser.has(earlier), f"no link to the handoff before: {browser.text(card)}")
    stage.faults("")


def questions(stage, browser, agent, axe):
    """A successor's questions are answered on the page; one that says nothing is gone on without."""
    card, view = urgent(stage, browser, agent, "ack_questions")
    until("it asks", lambda: browser.has(f"{card} [data-part=answers]:not([hidden]) input[name=answer]"))
    asked = view()["ack"]["questions"]
    check(all(question in browser.text(f"{card} [data-part=questions]") for question in asked), f"not shown: {asked}")
    accessible(browser, axe, "a card with questions")
    browser.type(f"{card} input[name=answer]", "Yes, on the branch main")
    browser.click(f"{card} [data-part=answers] button")
    until("the handoff continues", lambda: browser.text(f"{card} [data-part=state]") == "done")
    check("on the branch main" in json.dumps(view()["ack"]["answers"]), f"answered otherwise: {view()['ack']}")
    check(browser.has(f"{card} [data-part=answers][hidden]"), "there is nothing to answer any more")
    card, view = urgent(stage, browser, view()["successor_id"], "ack_never")
    until("it is waited for", lambda: browser.has(f"{card} [data-part=override]:not([hidden])"))
    browser.type(f"{card} input[name=override]", "I have seen that it works")
    browser.click(f"{card} [data-part=override] button")
    until("it is over", lambda: browser.text(f"{card} [data-part=state]") == "done")
    check(view()["ack"]["override"]["reason"] == "I have seen that it works", f"{view()['ack']}")
    stage.faults("")


def without_sidecar(stage, browser):
    """A page whose sidecar has died says so, and says when there is one again."""
    sidecar = stage.children[0]
    sidecar.kill()
    sidecar.wait(20)
    until("the death is told", lambda: "the sidecar is silent" in browser.text("#link"))
    stage.start("run")
    until("it is live again", lambda: browser.text("#link") == "live")
    last = stage.children[-1]
    last.send_signal(signal.SIGTERM)
    last.wait(20)
    until("the end is told", lambda: "no sidecar runs" in browser.text("#link"))
    stage.start("run")
    until("it is live again", lambda: browser.text("#link") == "live")


def fits(browser):
    """Usable at 400 pixels, and dark where that is wanted."""
    light = browser.js("return getComputedStyle(document.body).backgroundColor")
    browser.cdp("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    wide = browser.js("return [document.documentElement.scrollWidth, innerWidth]")
    check(wide[0] <= wide[1] == 400, f"wider than its window: {wide}")
    browser.cdp("Emulation.clearDeviceMetricsOverride")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.cdp("Emulation.setEmulatedMedia", features=dark)
    check(browser.js("return getComputedStyle(document.body).backgroundColor") != light, "it is not dark")
    browser.cdp("Emulation.setEmulatedMedia", features=[])


def play(stage, browser, picture, axe):
    kai = stage.agent("kai")
    mia = stage.agent("mia")
    url, code, token = stage.serve()
    login(browser, url)
    accessible(browser, axe, "the login")
    browser.open("about:blank")
    browser.open(f"{url}#code={code}")
    until("the agents are shown", lambda: browser.js("return document.querySelectorAll('#agents > li').length") == 2)
    check(code not in browser.js("return location.href"), "the code stays in the address bar")
    check(browser.text("#link") == "live", browser.text("#link"))
    successor = whole_handoff(stage, browser, kai, "the refactoring is done" if picture else HOSTILE)
    card = browser.js("const e = document.activeElement; return e === document.body ? '' : e.id")
    check(card == "agents", f"the agent's card has gone, and the focus is at {card!r}")
    failure(stage, browser, successor)
    accessible(browser, axe, "the page")
    fits(browser)
    if picture:
        size = browser.js("return document.documentElement.scrollHeight")
        browser.cdp("Emulation.setDeviceMetricsOverride", width=1000, height=size, deviceScaleFactor=1, mobile=False)
        browser.js("document.activeElement.blur(); scrollTo(0, 0)")
        browser.picture(picture)
        browser.cdp("Emulation.clearDeviceMetricsOverride")
    browser.click(".card.error button")
    until("the error goes", lambda: browser.has("#errors[hidden]"))
    check(not list((stage.home / "spool/errors").glob("*.json")), "the error file is still there")
    questions(stage, browser, mia, axe)
    rendering(browser)
    decided(stage, browser, axe)
    without_sidecar(stage, browser)
    doubt(stage, browser, browser.js("return document.querySelector('#agents [data-part=open]:not(:disabled)').closest('li').dataset.id"))
    logged = [line["message"] for line in browser.ask("POST", "/se/log", {"type": "browser"}) if line["level"] == "SEVERE"]
    # A browser asks for a picture of its own, and the wrong token was refused.
    fine = ["favicon.ico", "401", "/api/sidecar"]
    odd = [line for line in logged if not any(word in line for word in fine)]
    check(not odd, f"the browser complains: {odd}")
    return url, token


def schemathesis(program, url, token, folder):
    """Tries every operation of the OpenAPI document; the stream has no end, and is tried by tests/e2e/serve_bounds.rs. One
    check is left out: that all that fits its schema is accepted. No schema says which persona or session there is, or that
    a reason of blanks is none; these are refused by name, with 400."""
    command = [
        program, "run", f"{url}api/openapi.json", "--header", f"Authorization: Bearer {token}",
        "--exclude-path", "/api/events", "--exclude-checks", "positive_data_acceptance",
        "--max-examples", "15", "--request-timeout", "90", "--seed", "1", "--workers", "1",
    ]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, timeout=900, check=False)
    check(done.returncode == 0, f"schemathesis found faults ({done.returncode})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tasuki")
    parser.add_argument("--picture", type=pathlib.Path)
    parser.add_argument("--schemathesis")
    parser.add_argument("--axe", type=pathlib.Path)
    parser.add_argument("--no-browser", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tasuki-browser.") as name:
        folder = pathlib.Path(name)
        stage = browser = None
        try:
            stage = Stage(os.path.abspath(args.tasuki), folder)
            if args.no_browser:
                url, _, token = stage.serve()
            else:
                browser = Browser(shutil.which("chromedriver"), shutil.which("chromium"), folder)
                url, token = play(stage, browser, args.picture, args.axe and args.axe.read_text())
                print("browser: a handoff by its button, its steps as they passed, an error as it appeared", flush=True)
            if args.schemathesis:
                schemathesis(os.path.abspath(args.schemathesis), url, token, folder)
        except AssertionError as error:
            logs = "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')}" for path in folder.glob("*.log"))
            page = browser.text("body") if browser and browser.session else ""
            sys.exit(f"failed: {error}\n{logs}\n--- page\n{page}")
        finally:
            if browser:
                browser.close()
            if stage:
                stage.close()


main()
