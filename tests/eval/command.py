"""The command line of scripts/handoff-eval."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import compare
import new_case
import offline
import real
import table
from stage import ROOT, Trouble

# `eval` is the scripted agent: it tries this way of running without cost.
REAL = ("claude", "codex", "pi", "eval")
ARMS = ("repo", "salvage", "old", "new", "new+facts", "new+facts+fix", "oracle", "trace")


def parser():
    about = "Plays handoffs whose documents hold planted facts, and counts what reaches the successor and is used by it."
    top = argparse.ArgumentParser(prog="handoff-eval", description=about)
    below = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = below.add_parser("run", help="plays the cases")
    run.add_argument("--offline", action="store_true", help="with the scripted agent: no account, less than a minute")
    run.add_argument("--case", metavar="NAME", help="only this case")
    run.add_argument("--cases", metavar="DIR", type=pathlib.Path, help="another folder of cases")
    run.add_argument("--good", metavar="DIR", type=pathlib.Path, action="append", default=[], help="more good documents")
    run.add_argument("--json", metavar="FILE", type=pathlib.Path, help="writes the result there, too")
    run.add_argument("--tasuki", metavar="FILE", help="the program that is tried; without it, it is built")
    run.add_argument("--keep", action="store_true", help="leaves the folders of the run")
    run.add_argument("--profile", choices=REAL, help="real agents write the documents")
    run.add_argument("--successor-profile", choices=REAL, help="and these read them; else the same")
    run.add_argument("--arms", default="repo,new+facts,oracle", help="a list of: " + ", ".join(ARMS))
    run.add_argument("--runs", type=int, default=1, help="how often each arm of each case is played")
    run.add_argument("--max-cost", type=float, metavar="USD", help="stops before more is spent; needed with --profile")
    run.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for the real agents")
    run.add_argument("--work", type=pathlib.Path, metavar="DIR",
                     help="where the repositories are made: DIR/eval-CASE, which the real agents have to trust")
    run.add_argument("--old-prompts", type=pathlib.Path, metavar="DIR", help="the prompts of the arm `old`: a folder like data/prompts")
    new = below.add_parser("case", help="makes a case of a handoff of one's own")
    new = new.add_subparsers(dest="what", required=True, metavar="new").add_parser("new", help="a skeleton, to be filled in")
    new.add_argument("--from-handoff", required=True, metavar="ID")
    new.add_argument("--home", required=True, metavar="DIR", type=pathlib.Path)
    new.add_argument("--to", metavar="DIR", type=pathlib.Path, help="where the case is made; else below the working directory")
    against = below.add_parser("compare", help="compares two results, or two folders of results or prompts")
    against.add_argument("one", type=pathlib.Path)
    against.add_argument("two", type=pathlib.Path)
    return top


def program(asked):
    """The program that is tried. It is built, as by the other scripts, unless it was named."""
    if asked:
        found = shutil.which(asked) or asked
        if not os.access(found, os.X_OK):
            raise Trouble("%s is no program" % asked)
        return os.path.abspath(found)
    cargo = shutil.which("cargo") or os.path.expanduser("~/.cargo/bin/cargo")
    if not os.access(cargo, os.X_OK):
        raise Trouble("cargo is missing: name a built program with --tasuki")
    subprocess.run([cargo, "build", "--locked", "--quiet"], cwd=str(ROOT), check=True, stdin=subprocess.DEVNULL)
    return str(pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/tasuki")


def run(asked, out):
    for needed in ("tmux", "git"):
        if not shutil.which(needed):
            raise Trouble("%s is missing" % needed)
    if asked.offline == bool(asked.profile):
        raise Usage("run takes either --offline or --profile")
    if asked.profile:
        arms = asked.arms.split(",")
        wrong = [arm for arm in arms if arm not in ARMS]
        if wrong:
            raise Usage("there is no arm %s; there are %s" % (", ".join(wrong), ", ".join(ARMS)))
        if asked.max_cost is None or asked.max_cost <= 0:
            raise Usage("real agents cost money: say with --max-cost how much may be spent")
        result = real.Real(program(asked.tasuki), asked, arms, out).run()
        table.real(result, out)
    else:
        result = offline.Offline(program(asked.tasuki), asked.case, asked.good, out, asked.keep, asked.cases).run()
        table.offline(result, out)
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if result["met"] else 1


class Usage(Exception):
    """The command line is wrong."""


def main(args):
    out = table.Out(sys.stdout, sys.stderr)
    # SIGTERM ends the run as Ctrl-C does, so that all that was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    asked = parser().parse_args(args)
    try:
        if asked.command == "run":
            return run(asked, out)
        if asked.command == "case":
            return new_case.make(asked.from_handoff, asked.home, asked.to, out)
        return compare.compare(asked.one, asked.two, out)
    except BrokenPipeError:
        # Nobody reads any more; the rest has nowhere to go, also at the interpreter's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Usage as why:
        print("handoff-eval: %s" % why, file=sys.stderr)
        return 2
    except (Trouble, ValueError, OSError, subprocess.SubprocessError) as why:
        print("handoff-eval: %s" % why, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("handoff-eval: stopped; everything that was started is ended", file=sys.stderr)
        return 130
