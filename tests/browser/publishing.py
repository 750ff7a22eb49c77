"""Publishing by the keyboard alone, with the real gh and a server of our own."""

from by_keys import begun, can, opened, step, surely, tab_to, view
from chrome import CONTROL, ENTER
from stage import check, until

ISSUE = "o/r#42"


def publishing(stage, browser):
    """A document that could not be published is published by its key, and at another place."""
    agent = stage.agent("vera")
    handoff = begun(stage, browser, agent, "", "--publish", "tasuki-nobody/nothing#1")
    step(stage, handoff, "done")
    state = lambda: view(stage, "handoffs", handoff)["publish"]
    until("it could not be published", lambda: state()["state"] in ("failed", "retrying"))
    tries = len(state()["attempts"])
    opened(browser, "handoffs", "2", handoff)
    can(browser, handoff, "publish-now")
    browser.keys("p")
    surely(browser)
    until("it is tried again", lambda: len(state()["attempts"]) > tries or state()["number"] > 1)
    if not stage.github:
        print("skipped: publishing by the keyboard: there is no gh", flush=True)
        return
    until("it could not be published", lambda: state()["state"] == "failed")
    can(browser, handoff, "publish-at")
    opened(browser, "handoffs", "2", handoff)
    tab_to(browser, "handoffs", handoff, "publish-at")
    browser.keys(ENTER)
    browser.keys(ISSUE)
    browser.keys(ENTER, CONTROL)
    published(stage, browser, handoff, 1)
    agent = view(stage, "handoffs", handoff)["successor_id"]
    agent = with_credentials(stage, browser, agent)
    in_doubt(stage, browser, agent)


def published(stage, browser, handoff, comments):
    until("it is published", lambda: view(stage, "handoffs", handoff)["publish"]["state"] == "published")
    until("the card says where", lambda: "published at" in browser.text(f'#handoffs > li[data-id="{handoff}"] [data-part=publish]'))
    check(len(stage.github.comments) == comments, f"{len(stage.github.comments)} comments, not {comments}")


def with_credentials(stage, browser, agent):
    """A document that holds a credential waits for a decision: published without it, or as it is."""
    for button, holds in (("redacted", False), ("as-is", True)):
        handoff = begun(stage, browser, agent, "flaw=secrets", "--publish", ISSUE, "--check", "off")
        step(stage, handoff, "done")
        stage.faults("")
        can(browser, handoff, button)
        opened(browser, "handoffs", "2", handoff)
        if button == "redacted":
            browser.keys("p")
        else:
            tab_to(browser, "handoffs", handoff, button)
            browser.keys(ENTER)
        surely(browser)
        published(stage, browser, handoff, 2 + int(holds))
        check(("[REDACTED:" in stage.github.comments[-1]) is not holds, f"published otherwise: {button}")
        agent = view(stage, "handoffs", handoff)["successor_id"]
    return agent


def in_doubt(stage, browser, agent):
    """Nobody can tell if the comment was made: the person has looked, and says so."""
    for number, button in enumerate(("is-there", "is-not")):
        stage.github.loses_answers = 1
        handoff = begun(stage, browser, agent, "", "--publish", ISSUE)
        step(stage, handoff, "done")
        can(browser, handoff, button)
        opened(browser, "handoffs", "2", handoff)
        tab_to(browser, "handoffs", handoff, button)
        browser.keys(ENTER)
        surely(browser)
        until("it is published", lambda: view(stage, "handoffs", handoff)["publish"]["state"] == "published")
        # The person errs the second time, and the comment is found.
        check(len(stage.github.comments) == 4 + number, f"{len(stage.github.comments)} comments: {button}")
        agent = view(stage, "handoffs", handoff)["successor_id"]
