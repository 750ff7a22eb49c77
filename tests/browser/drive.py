#!/usr/bin/env python3
"""Drives headless Chromium through the page of a real `tasuki serve`, over a real sidecar with demo agents in a private
tmux server: a handoff by its button, the steps as they pass, an error as it appears, and each action by the keyboard alone.
Then the page over a home with very many agents and handoffs, and over a fleet of three hosts. Python's standard library only; the browser is spoken to by
chromedriver's own WebDriver protocol. With --schemathesis it also lets that try the OpenAPI document. Called by
scripts/browser."""

import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from chrome import Browser
from crowd import Crowd, dates, measure, needs, old_errors, pictures, retried, silently
from fleet import Fleet, hosts
from keyboard import by_keyboard
from scenes import (
    HOSTILE, accessible, decided, doubt, ended_elsewhere, failure, login, other_clock, questions, rendering, unanswered, whole_handoff,
    without_sidecar,
)
from stage import Stage, check, until


def picture_of(browser, path):
    """The picture for the guide."""
    browser.wide(1280, 900)
    size = browser.js("return document.documentElement.scrollHeight")
    browser.wide(1280, size)
    browser.js("document.activeElement.blur(); document.getElementById('notices').replaceChildren(); scrollTo(0, 0)")
    browser.picture(path)
    browser.cdp("Emulation.clearDeviceMetricsOverride")


def enter(browser, url, code, agents):
    """Opens the page by the code, and waits until it shows so many agents."""
    browser.open(f"{url}#code={code}")
    until("the agents are shown", lambda: browser.js("return document.querySelectorAll('#agents > li').length") == agents)


def play(stage, browser, picture, axe):
    kai = stage.agent("kai")
    mia = stage.agent("mia")
    url, code, _ = stage.serve()
    login(browser, url)
    accessible(browser, axe, "the login")
    browser.open("about:blank")
    enter(browser, url, code, agents=2)
    check(code not in browser.js("return location.href"), "the code stays in the address bar")
    check(browser.text("#link") == "live", browser.text("#link"))
    successor = whole_handoff(stage, browser, kai, "the refactoring is done" if picture else HOSTILE)
    card = browser.js("const e = document.activeElement; return e === document.body ? '' : e.id")
    check(card == "agents", f"the agent's card has gone, and the focus is at {card!r}")
    failure(stage, browser, successor)
    accessible(browser, axe, "the page")
    if picture:
        picture_of(browser, picture)
    browser.click(".card.error [data-part=dismiss]")
    browser.click("#sure-yes")
    until("the error goes", lambda: browser.has("#errors[hidden]"))
    check(not list((stage.home / "spool/errors").glob("*.json")), "the error file is still there")
    questions(stage, browser, mia, axe)
    rendering(browser)
    unanswered(stage, browser, stage.agent("una"))
    ended_elsewhere(stage, browser)
    other_clock(browser)
    decided(stage, browser, axe)
    without_sidecar(stage, browser)
    doubt(stage, browser, browser.js("return document.querySelector('#agents [data-part=open]:not(:disabled)').closest('li').dataset.id"))
    print("browser: a handoff by its button, its steps as they passed, an error as it appeared", flush=True)
    complaints(browser)


def complaints(browser):
    """What the browser says of the page, except what the scenes ask for."""
    logged = [line["message"] for line in browser.ask("POST", "/se/log", {"type": "browser"}) if line["level"] == "SEVERE"]
    # A browser asks for a picture of its own, the wrong token was refused, and so were some requests; there may be no
    # document and no list of what needs a person.
    fine = ["favicon.ico", "401", "/api/sidecar", "/api/health", "/api/needs", "/document", "/requests", "/api/agents/%25"]
    odd = [line for line in logged if not any(word in line for word in fine)]
    check(not odd, f"the browser complains: {odd}")


def times(args, folder, browser, axe):
    """How long one event takes on the page with 300 handoffs and 200 agents."""
    with contextlib.closing(Crowd(os.path.abspath(args.tasuki), folder)) as crowd:
        measure(crowd, browser)
        accessible(browser, axe, "the page with very many cards")
        complaints(browser)


def many(args, folder, browser, axe):
    """What else that page shows."""
    look = lambda what: accessible(browser, axe, what)
    with contextlib.closing(Crowd(os.path.abspath(args.tasuki), folder)) as crowd:
        needs(crowd, browser, look)
        silently(crowd, browser)
        dates(crowd, browser)
        old_errors(crowd, browser)
        retried(crowd, browser)
        pictures(crowd, browser, args.pictures, look)
        complaints(browser)


def others(args, folder, browser, axe):
    """The page with the other hosts of a fleet."""
    with contextlib.closing(Fleet(os.path.abspath(args.tasuki), folder / "fleet")) as fleet:
        hosts(fleet, browser, lambda what: accessible(browser, axe, what))
        complaints(browser)


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


def scenes(args, folder, browser, axe):
    """Handoffs and work items by buttons."""
    with contextlib.closing(Stage(os.path.abspath(args.tasuki), folder)) as stage:
        play(stage, browser, args.picture, axe)


def keys(args, folder, browser, axe):
    """Each action by the keyboard alone."""
    with contextlib.closing(Stage(os.path.abspath(args.tasuki), folder)) as stage:
        stage.agent("kai")
        url, code, _ = stage.serve()
        enter(browser, url, code, agents=1)
        by_keyboard(stage, browser, url, axe)
        complaints(browser)


def api(args, folder):
    """The OpenAPI document, over a home with agents, a handoff and a work item."""
    with contextlib.closing(Stage(os.path.abspath(args.tasuki), folder)) as stage:
        stage.run("handoff", stage.agent("kai"), "--reason", "a fresh look")
        stage.run("work", "create", "bug", "The export forgets the time zone")
        until("the handoff is done", lambda: any(view["step"] == "done" for view in stage.handoffs()))
        url, _, token = stage.serve()
        schemathesis(os.path.abspath(args.schemathesis), url, token, folder)


# What is tried in a browser, each with a home and a browser of its own. The first is timed, and has the machine for itself; the
# others wait most of the time, and run at once.
SHOWN = {"times": times, "scenes": scenes, "keys": keys, "many": many, "others": others}


def one(args):
    """One part, in this process."""
    with tempfile.TemporaryDirectory(prefix="tasuki-browser.") as name:
        folder, browser = pathlib.Path(name), None
        try:
            if args.part == "api":
                return api(args, folder)
            browser = Browser(shutil.which("chromedriver"), shutil.which("chromium"), folder)
            SHOWN[args.part](args, folder, browser, args.axe and args.axe.read_text())
        except AssertionError as error:
            logs = "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')}" for path in folder.glob("*.log"))
            page = browser.text("body") if browser and browser.session else ""
            sys.exit(f"failed: {error}\n{logs}\n--- page\n{page}")
        finally:
            if browser:
                browser.close()


def all_at_once(parts):
    """Each part in a process of its own; what it says is printed when it has ended. Gives those that failed."""
    with contextlib.ExitStack() as stack:
        running, failed = {}, []
        for part in parts:
            said = stack.enter_context(tempfile.TemporaryFile())
            child = subprocess.Popen([sys.executable, *sys.argv, "--part", part], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            stack.callback(child.terminate)
            running[part] = child, said, time.monotonic()
        while running:
            for part, (child, said, began) in list(running.items()):
                if child.poll() is None:
                    continue
                said.seek(0)
                print(said.read().decode(errors="replace"), end="")
                print(f"browser: {part}: {time.monotonic() - began:.0f} s", flush=True)
                if child.returncode:
                    failed.append(part)
                del running[part]
            time.sleep(0.1)
        return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tasuki")
    parser.add_argument("--picture", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("--schemathesis")
    parser.add_argument("--axe", type=pathlib.Path)
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--part", choices=["api", *SHOWN])
    args = parser.parse_args()
    if args.part:
        return one(args)
    # The OpenAPI document is tried alone, too: its thousands of requests leave nothing to wait for.
    shown = [] if args.no_browser else list(SHOWN)
    parts = [["api"] if args.schemathesis else [], shown[:1], shown[1:]]
    if failed := [part for at_once in parts for part in all_at_once(at_once)]:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
