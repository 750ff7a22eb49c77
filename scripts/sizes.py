"""Prints how many KiB of a program's code come from each crate, and how large its other parts are.

usage: sizes.py PROGRAM [--markdown]
"""

import collections
import re
import subprocess
import sys

CRATE = re.compile(r"^(?:<)*(?:&|mut |dyn |\[|\(|\*const |\*mut )*([a-z][a-z0-9_]*)(?:\[[0-9a-f]+\])?::")
# Parts of the program beside its code, with what they are for.
PARTS = {
    ".rodata": "texts and tables (messages, help, the guide, profiles, the page)",
    ".eh_frame": "how to unwind the stack",
    ".gcc_except_table": "what to drop while the stack is unwound after a panic",
    ".rela.dyn": "list of the addresses that are set when the program starts",
    ".data.rel.ro": "constant tables of addresses, such as those of functions",
}
MOST_NAMED = 24


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def crates(program):
    """The bytes of code of each crate."""
    found = collections.Counter()
    for line in run("nm", "--print-size", "--demangle=rust", program).splitlines():
        parts = line.split(None, 3)
        if len(parts) == 4 and parts[2] in "tTwW":
            crate = CRATE.match(parts[3])
            found[crate[1] if crate else "code whose crate is not known"] += int(parts[1], 16)
    return found


def parts(program):
    """The bytes of the parts beside the code."""
    found = {}
    for line in run("size", "-A", program).splitlines():
        words = line.split()
        if len(words) == 3 and words[0] in PARTS:
            found[words[0]] = int(words[1])
    return found


def rows(program):
    found = crates(program)
    for crate, size in found.most_common(MOST_NAMED):
        yield crate, size
    rest = found.most_common()[MOST_NAMED:]
    yield f"{len(rest)} others", sum(size for _, size in rest)
    yield "all code", sum(found.values())
    for name, size in parts(program).items():
        yield f"{name}: {PARTS[name]}", size


def main():
    program, markdown = sys.argv[1], "--markdown" in sys.argv[2:]
    if markdown:
        print("| crate or part | KiB |\n|---|---|")
    for name, size in rows(program):
        kib = f"{size / 1024:,.0f}"
        print(f"| {name} | {kib} |" if markdown else f"{kib:>9}  {name}")


if __name__ == "__main__":
    main()
