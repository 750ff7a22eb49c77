#!/bin/sh
# tasuki's tmux plugin, for tmux 3.2 and newer: a status segment, and two keys that nothing is bound to unless you say so.
# tpm runs this file; without tpm, put "run-shell /path/to/tasuki.tmux" at the end of your tmux.conf.
#
#   set -g status-right '#{tasuki_status} %H:%M'   # the segment stands where this placeholder stands
#   set -g @tasuki_handoff_key H                   # prefix H: hand off the agent in the current pane
#   set -g @tasuki_top_key T                       # prefix T: tasuki top in a popup
#   set -g @tasuki_program ~/.cargo/bin/tasuki     # where it is not in the server's PATH
#   set -g @tasuki_home ~/fleet                    # where it is not the usual one
set -eu

# As a plugin this runs by the link at the top of the repository. The folder keeps the name by which it was reached: an
# upgrade may remove the folder to which a link in that name leads, and turns the link to the new one.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if [ -f "$here/packaging/tmux/popup" ]; then here=$here/packaging/tmux; fi

# What each home has written into its own private session, as long as its sidecar is attached there: a sidecar that has
# died says nothing. No program is run for it.
lives='#{m:_tasuki-*,#{session_name}},#{session_attached}'
segment="#{S:#{?#{&&:#{&&:$lives},#{@tasuki_status}}, #{@tasuki_status},}}"

option() { tmux show-option -gqv "$1"; }

# place OPTION: puts the segment where its placeholder stands. Nothing else of the option is changed, and none that has no
# placeholder.
place() {
  value=$(option "$1") placeholder='#{tasuki_status}' done=''
  case $value in *"$placeholder"*) ;; *) return 0 ;; esac
  while :; do
    case $value in
      *"$placeholder"*) done=$done${value%%"$placeholder"*}$segment value=${value#*"$placeholder"} ;;
      *) break ;;
    esac
  done
  value=$done$value
  # tmux takes a semicolon at the end of an argument for its own.
  case $value in *\;) value=${value%;}\\\; ;; esac
  tmux set-option -gq "$1" "$value"
}

# key OPTION WHAT NOTE: binds a key if the user has named one. No text of anybody's is part of the command: the popup's
# program asks for it.
key() {
  key=$(option "$1")
  [ -n "$key" ] || return 0
  tmux bind-key -N "$3" "$key" run-shell -b \
    "exec sh \"\$(tmux show-option -gqv @tasuki_plugin)/popup\" $2 '#{pane_id}' #{q:client_name} >/dev/null 2>&1"
}

tmux set-option -gq @tasuki_plugin "$here"
place status-left
place status-right
key @tasuki_handoff_key handoff 'tasuki: hand off the agent in this pane'
key @tasuki_top_key top 'tasuki: watch agents and handoffs'
