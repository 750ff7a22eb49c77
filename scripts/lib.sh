# Shell parts that the scripts share; it is sourced, not run.

# Steps are told on standard error, so that what a program prints stays apart from what we say about it.
say() { printf '\033[1m==>\033[0m %s\n' "$*" | { if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then cat; else sed $'s/\033\\[[0-9;]*m//g'; fi; } >&2; }

fail() { say "$*"; exit 1; }

# step NAME COMMAND…: runs the command, says how long it took, and ends the script when it fails.
step() {
  local name=$1 start=$SECONDS
  shift
  say "$name"
  if "$@"; then say "$name: ok, $((SECONDS - start)) s"; else
    local code=$?
    say "$name: FAILED with code $code after $((SECONDS - start)) s"
    exit "$code"
  fi
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "needs root and there is no sudo: $*"
  fi
}

# need_tmux: tmux is the one program that everything here needs beside Rust. Installs it if it is missing, and says so.
need_tmux() {
  command -v tmux >/dev/null && return 0
  say "tmux is missing: installing it by this system's package manager"
  if command -v apt-get >/dev/null; then
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tmux
  elif command -v dnf >/dev/null; then as_root dnf install -y -q tmux
  elif command -v pacman >/dev/null; then as_root pacman -Sy --noconfirm --needed tmux
  elif command -v apk >/dev/null; then as_root apk add --quiet tmux
  elif command -v zypper >/dev/null; then as_root zypper --quiet --non-interactive install tmux
  elif command -v brew >/dev/null; then brew install --quiet tmux
  else fail "no package manager that I know: install tmux 3.2 or newer, then run this again"
  fi
  command -v tmux >/dev/null || fail "tmux was installed, but is not found in PATH"
  say "installed $(tmux -V)"
}

# want PACKAGE COMMAND…: something that only a part of the suites uses, and that is there when the command succeeds. Where it
# can't be installed, the tests that use it count themselves as skipped.
want() {
  local package=$1
  shift
  "$@" >/dev/null 2>&1 && return 0
  if command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }; then
    say "$package is missing: installing it by this system's package manager"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" || true
  fi
  "$@" >/dev/null 2>&1 || say "$package can't be had: the tests that use it are skipped"
}

# has_file PATTERN…: whether a file is there.
has_file() { compgen -G "$1" >/dev/null || { [ $# -gt 1 ] && has_file "${@:2}"; }; }

# use_tmux PROGRAM: from here on "tmux" is that program, for us and for all that we start.
use_tmux() {
  [ -x "$1" ] && [ "$(basename "$1")" = tmux ] || fail "$1 is no program named tmux"
  PATH="$(cd "$(dirname "$1")" && pwd):$PATH"
  export PATH
  say "tests run against $(tmux -V), $1"
}

# count_skip WHY: a line of the closing table for what was left out.
count_skip() {
  say "skipped: $1"
  [ -z "${TASUKI_TALLY:-}" ] || { mkdir -p "$TASUKI_TALLY" && printf '1\tskipped: %s\n' "$1" >>"$TASUKI_TALLY/script"; }
}

# need_rust: we don't install a compiler behind anybody's back.
need_rust() {
  if ! command -v cargo >/dev/null; then
    [ -x "$HOME/.cargo/bin/cargo" ] || fail "cargo is missing: install Rust 1.90 or newer from https://rustup.rs, then run this again"
    export PATH="$HOME/.cargo/bin:$PATH"
  fi
  command -v cc >/dev/null || fail "cc is missing, which Rust links with: install gcc (on Debian: apt-get install gcc libc6-dev), then run this again"
}

# need_component NAME COMMAND: a part of the toolchain that a minimal installation lacks. Adds it by rustup, and says so.
need_component() {
  cargo "$2" --version >/dev/null 2>&1 && return 0
  command -v rustup >/dev/null || fail "cargo $2 is missing, and there is no rustup to add $1 with"
  say "cargo $2 is missing: adding $1 by rustup"
  rustup component add "$1"
}

# limited COMMAND…: for five minutes at most; a Mac has no timeout.
limited() { if command -v timeout >/dev/null; then timeout 300 "$@"; else "$@"; fi; }

has_std() { has_file "$(rustc --print target-libdir --target "$1" 2>/dev/null)/libstd-*.rlib"; }

# need_std TARGET: the standard library for that target, by rustup where there is one.
need_std() {
  has_std "$1" && return 0
  command -v rustup >/dev/null || return 1
  say "adding the standard library for $1 by rustup"
  limited rustup target add "$1" >&2 && has_std "$1"
}

# link_statically TARGET: what is built for this target from here on is static. Rust brings the C library and the linker, so
# nothing of this system gets into it.
link_statically() {
  local name
  name=CARGO_TARGET_$(tr a-z- A-Z_ <<<"$1")_RUSTFLAGS
  export "$name=-Clinker=rust-lld -Clinker-flavor=ld.lld -Clink-self-contained=yes"
}

# closing_table FOLDER: adds up what the tests counted there (tests/support/tally.rs): what was tried, what of it was
# lost or happened twice, and what was skipped, with the reason.
closing_table() {
  local counted=("$1"/*)
  [ -e "${counted[0]}" ] || return 0
  awk -F '\t' '
    { sum[$2] += $1 }
    function row(name) { printf "  %-24s %12d\n", name, sum[name]; shown[name] = 1 }
    END {
      known = split("faults tried|instants of death|bad inputs|requests|texts typed", first, "|")
      for (i = 1; i <= known; i++) row(first[i])
      for (name in sum) if (!(name in shown) && name != "lost" && name != "twice" && name !~ /^skipped: /) row(name)
      row("lost"); row("twice")
      for (name in sum) if (name ~ /^skipped: /) row(name)
    }' "${counted[@]}"
}
