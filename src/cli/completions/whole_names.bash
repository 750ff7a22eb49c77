# bash ends a word at each "@". Here it is a part of names, as in kai@box, so the pieces are put together again.
FUNCTION_whole() {
    local rest=$COMP_LINE words=() last=-1 at=0 before= i word
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        if ((last >= 0)) && [[ $rest == "$word"* && $rest != [[:space:]]* && ($word == @* || ${words[last]} == *@) ]]; then
            if ((i == COMP_CWORD)); then before=${words[last]}; fi
            words[last]+=$word
        else
            last=$((last + 1))
            words[last]=$word
        fi
        if ((i == COMP_CWORD)); then at=$last; fi
        rest=${rest#*"$word"}
    done
    # What bash replaces begins at the last "@".
    if [[ $2 == @* ]]; then before=${before%@}; fi
    local COMP_CWORD=$at COMP_WORDS=("${words[@]}")
    FUNCTION "$1" "$before$2" "$3"
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
}
