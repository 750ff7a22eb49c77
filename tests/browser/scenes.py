"""What happens on the page while real handoffs pass: steps, failures, decisions, questions."""

import json
import signal
import time

from stage import check, until

HOSTILE = '<b id="evil">context</b> is "full" & <img src=x onerror=document.title=1>'
STEPS = ["waiting", "instructing", "writing", "checking", "recording", "ending", "starting", "priming", "briefing", "reading"]

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
    browser.click("#sure-yes")
    until("it is given up", lambda: browser.text(f"{card} [data-part=state]") == "cancelled")


# Lets no answer to the next requests come back, as if the connection broke: the server gets each, and carries it out. `sentKeys`
# are the keys of all requests, in their order.
LOSSY = """
if (!window.sentKeys) {
  const real = window.fetch;
  window.sentKeys = [];
  window.fetch = async (path, options) => {
    const response = real(path, options);
    if (options?.method !== "POST") return response;
    window.sentKeys.push(options.headers["Idempotency-Key"]);
    if (window.losses <= 0) return response;
    window.losses -= 1;
    await (await response).text();
    throw new TypeError("Failed to fetch");
  };
}
window.losses = arguments[0];
"""


def unanswered(stage, browser, agent):
    """A text whose answer was lost: pressing Send again types nothing twice, and another text is another request."""
    card = f'#agents > li[data-id="{agent}"]'
    form = f"{card} [data-part=send-form]"
    sent = lambda: [one for one in map(json.loads, (path.read_text() for path in (stage.home / "spool/results").glob("page-*.json"))) if one["kind"] == "agent_send"]
    known = len(sent())
    until("the agent takes texts", lambda: browser.has(f"{card} [data-part=send]:not(:disabled)"))
    browser.js(LOSSY, 2)
    browser.click(f"{card} [data-part=send]")
    browser.type(f"{form} textarea", "say it once")
    for count in (1, 2):
        browser.click(f"{form} button[type=submit]")
        until("the doubt is told", lambda: "it may have been carried out" in browser.text(f"{form} [role=alert]"))
        until("the button can be pressed", lambda: browser.has(f"{form} button[type=submit]:not(:disabled)"))
        check(browser.js("return window.sentKeys.length") == count, "it was not sent again")
    check(browser.js("return document.querySelector(arguments[0]).value", f"{form} textarea") == "say it once", "the text is gone")
    browser.click(f"{form} button[type=submit]")
    until("it is sent", lambda: browser.has(f"{form}[hidden]"))
    until("it is named the answer to an earlier press", lambda: "This answers an earlier press" in browser.text("#notices"))
    # Over the cards, it would take the next click.
    browser.js("document.querySelectorAll('#notices button').forEach((button) => button.click())")
    keys = browser.js("return window.sentKeys")
    check(len(keys) == 3 and len(set(keys)) == 1, f"not the same request: {keys}")
    check(len(sent()) == known + 1, f"typed more than once: {sent()}")
    # The same text once more is another request, now that the first one has its answer.
    until("its turn is over", lambda: browser.text(f"{card} [data-part=state]") == "idle")
    browser.js(LOSSY, 1)
    browser.click(f"{card} [data-part=send]")
    browser.type(f"{form} textarea", "say it once")
    browser.click(f"{form} button[type=submit]")
    until("the doubt is told", lambda: "it may have been carried out" in browser.text(f"{form} [role=alert]"))
    browser.type(f"{form} textarea", ", and again")
    browser.click(f"{form} button[type=submit]")
    until("it is sent", lambda: browser.has(f"{form}[hidden]"))
    keys = browser.js("return window.sentKeys")
    check(len(keys) == 5 and len(set(keys)) == 3, f"not two other requests: {keys}")
    until("its turns are over", lambda: browser.text(f"{card} [data-part=state]") == "idle")


def other_clock(browser):
    """A browser whose clock is an hour ahead, or behind, calls no living sidecar silent."""
    browser.js("window.now = Date.now")
    for hours in (1, -1):
        browser.js("const ahead = arguments[0] * 3600000; Date.now = () => window.now() + ahead", hours)
        for _ in range(7):
            check(browser.text("#link") == "live", f"{hours} h ahead: {browser.text('#link')}")
            time.sleep(1)
    browser.js("Date.now = window.now")


def ended_elsewhere(stage, browser):
    """An agent that ends elsewhere: what is typed in its card stays, and what is refused in it is told."""
    agents = [stage.agent("zoe"), stage.agent("zack")]
    cards = [f'#agents > li[data-id="{agent}"]' for agent in agents]
    for agent, card in zip(agents, cards):
        until("its card is there", lambda: browser.has(f"{card} [data-part=send]:not(:disabled)"))
        browser.click(f"{card} [data-part=name]")
    browser.click(f"{cards[0]} [data-part=send]")
    browser.type(f"{cards[0]} textarea[name=text]", "half a sen")
    browser.click(f"{cards[1]} [data-part=end]")
    until("it asks", lambda: browser.has("#sure[open]"))
    for agent in agents:
        stage.run("agent", "shutdown", agent, "--force")
    ended = lambda agent: json.loads((stage.home / f"view/agents/{agent}.json").read_text())["ended_at"]
    until("both have ended", lambda: all(map(ended, agents)))
    until("its card says so", lambda: "no longer in the list" in browser.text(f"{cards[0]} [data-part=gone]"))
    browser.click("#sure-yes")
    until("the refusal is told", lambda: "End: " in browser.text("#notices"))
    until("nothing of it is needed", lambda: not browser.has(cards[1]))
    text = browser.js("return document.querySelector(arguments[0])?.value", f"{cards[0]} textarea[name=text]")
    check(text == "half a sen", f"the typed text is {text!r}")
    browser.js("document.querySelector(`${arguments[0]} form:not([hidden]) button[type=button]`).click()", cards[0])
    until("the card goes when its form is put away", lambda: not browser.has(cards[0]))


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
    browser.js("return import('/markdown.js').then((found) => { window.rendered = found.rendered })")
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
    browser.click("#sure-yes")
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
