# Sourced, not run: "tasuki" with the program and the home that the user has named in tmux's options.
program=$(tmux show-option -gqv @tasuki_program)
home=$(tmux show-option -gqv @tasuki_home)
if [ -z "$program" ]; then
  program=tasuki
  command -v tasuki >/dev/null 2>&1 || { [ -x "$HOME/.cargo/bin/tasuki" ] && program=$HOME/.cargo/bin/tasuki; } || true
fi
case $program in "~/"*) program=$HOME/${program#"~/"} ;; esac
case $home in "~/"*) home=$HOME/${home#"~/"} ;; esac
# "command", because the function has the program's own name: without it, it would call itself.
tasuki() { command "$program" ${home:+--home "$home"} "$@"; }

# Keeps the popup open until it was read.
wait_for_enter() {
  printf '\n%s' "$1"
  read -r _ || true
}
