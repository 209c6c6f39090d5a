"""`fakeapiserver completion bash|zsh|fish`: a script that completes commands, flags and known values, made of the manual."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from fakeapiserver.cli.arguments import UsageError, read_into
from fakeapiserver.cli.complain import refuse
from fakeapiserver.cli.manual.choices import choices
from fakeapiserver.cli.manual.commands import commands
from fakeapiserver.cli.manual.entry import Command, Flag
from fakeapiserver.cli.manual.overview import SUMMARIES
from fakeapiserver.cli.manual.page import takes_value

_NAME: Final = "fakeapiserver"


class _Options:
    """There are no flags."""


def main(arguments: Sequence[str]) -> int:
    """0; 2 for a wrong command line."""
    try:
        words = read_into(_Options(), arguments, {})
        if not words:
            raise UsageError("completion needs a shell: bash, zsh or fish")
        if words[0] not in _SHELLS:
            raise UsageError(f"there is no completion for {words[0]!r}: choose bash, zsh or fish")
        if words[1:]:
            raise UsageError(f"unexpected argument {words[1]!r}")
    except UsageError as error:
        return refuse(error, "completion")
    print(_SHELLS[words[0]](), end="")
    return 0


def _flags(command: Command) -> Iterator[tuple[str, Flag]]:
    for topic in command.topics.values():
        yield from topic.items()


def _first_words() -> list[str]:
    return list(dict.fromkeys(name.partition(" ")[0] for name in commands()))


def _second_words() -> dict[str, list[str]]:
    """Returns the words that may follow a command:

    `api` and `webhook` after `create`, and the known arguments of others.
    """
    by_command: dict[str, list[str]] = {}
    for name, command in commands().items():
        first, _, second = name.partition(" ")
        by_command.setdefault(first, []).extend([second] if second else choices(command.arguments))
    return {name: list(dict.fromkeys(words)) for name, words in by_command.items() if words}


# ---------------------------------------------------------------------------------------------------- bash

_BASH: Final = """\
# bash completion of fakeapiserver
_fakeapiserver() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} flag= i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${{COMP_WORDS[i]}} == -- ]]; then
            COMPREPLY=($(compgen -o default -- "$current"))
            return
        fi
    done
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "{commands} --help --version" -- "$current"))
        return
    fi
    [[ $command == create ]] && ((COMP_CWORD > 2)) && command="create ${{COMP_WORDS[2]}}"
    # bash takes = for a word of its own: --flag = value
    if [[ $current == = ]]; then flag=$before current=
    elif [[ $before == = ]]; then flag=${{COMP_WORDS[COMP_CWORD-2]}}
    elif [[ $before == -* ]]; then flag=$before
    fi
    local values= takes=
    case "$command $flag" in
{values}
    esac
    if [[ -n $values ]]; then
        local last=${{current##*,}}
        local first=${{current%"$last"}}
        COMPREPLY=($(compgen -P "$first" -W "$values" -- "$last"))
        return
    fi
    if [[ -n $takes || $before == = || ${{COMP_WORDS[COMP_CWORD]}} == = ]]; then
        COMPREPLY=($(compgen -o default -- "$current"))
        return
    fi
    local words=
    case "$command" in
{words}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ -n ${{COMPREPLY-}} ]] || COMPREPLY=($(compgen -o default -- "$current"))
}}
complete -o nosort -F _fakeapiserver fakeapiserver 2>/dev/null || complete -F _fakeapiserver fakeapiserver
"""


def bash() -> str:
    values, words = [], []
    seconds = _second_words()
    for name, command in commands().items():
        flags = dict(_flags(command))
        for flag, entry in flags.items():
            if known := choices(entry.choices):
                values.append(f'        "{name} --{flag}") values="{" ".join(known)}" ;;')
        if taking := [f'"{name} --{flag}"' for flag, entry in flags.items() if takes_value(command, flag, entry)]:
            values.append(f"        {'|'.join(taking)}) takes=1 ;;")
        following = [*seconds.get(name, ()), *(f"--{flag}" for flag in flags)]
        words.append(f'        "{name}") words="{" ".join(following)}" ;;')
    words.append(f'        create) words="{" ".join(seconds["create"])}" ;;')
    return _BASH.format(commands=" ".join(_first_words()), values="\n".join(values), words="\n".join(words))


# ---------------------------------------------------------------------------------------------------- zsh

_ZSH: Final = """\
#compdef fakeapiserver
# zsh completion of fakeapiserver
_fakeapiserver() {{
    local -a commands=(
{commands}
    )
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    local command=$words[2]
    if [[ $command == create ]]; then
        if ((CURRENT == 3)); then
            _values kind api webhook
            return
        fi
        command="create $words[3]"
        shift words
        ((CURRENT--))
    fi
    shift words
    ((CURRENT--))
    case $command in
{cases}
    esac
}}
if [[ $funcstack[1] == _fakeapiserver ]]; then _fakeapiserver "$@"; else compdef _fakeapiserver fakeapiserver; fi
"""


def zsh() -> str:
    firsts = {first: SUMMARIES.get(first, "adds an API or a webhook to a project") for first in _first_words()}
    rows = "\n".join(f"        {shlex.quote(f'{name}:{summary}')}" for name, summary in firsts.items())
    cases = "\n".join(_zsh_case(name, command) for name, command in commands().items())
    return _ZSH.format(commands=rows, cases=cases)


def _zsh_case(name: str, command: Command) -> str:
    specs = [shlex.quote(_zsh_flag(command, flag, entry)) for flag, entry in _flags(command)]
    if known := choices(command.arguments):
        specs.append(shlex.quote(f"1:argument:({' '.join(known)})"))
    specs.append("'*:file:_files'")
    return f"        {shlex.quote(name)}) _arguments \\\n            " + " \\\n            ".join(specs) + " ;;"


def _zsh_flag(command: Command, flag: str, entry: Flag) -> str:
    text = "".join(f"\\{letter}" if letter in "[]:\\" else letter for letter in entry.text)
    if known := choices(entry.choices):
        return f"*--{flag}=[{text}]:value:_sequence compadd - {' '.join(known)}"
    if takes_value(command, flag, entry):
        return f"*--{flag}=[{text}]:value:_files"
    return f"*--{flag}[{text}]"


# ---------------------------------------------------------------------------------------------------- fish


def fish() -> str:
    lines = ["# fish completion of fakeapiserver", f"complete -c {_NAME} -n __fish_use_subcommand -f"]
    for first in _first_words():
        summary = SUMMARIES.get(first, "adds an API or a webhook to a project")
        lines.append(f"complete -c {_NAME} -n __fish_use_subcommand -a {first} -d {_fish_quote(summary)}")
    for first, seconds in _second_words().items():
        others = " ".join(word for word in seconds if word != first)
        condition = f"__fish_seen_subcommand_from {first}; and not __fish_seen_subcommand_from {others}"
        lines.append(f"complete -c {_NAME} -n {_fish_quote(condition)} -f -a {_fish_quote(' '.join(seconds))}")
    for name, command in commands().items():
        conditions = [f"__fish_seen_subcommand_from {word}" for word in name.split()]
        condition = _fish_quote("; and ".join(conditions))
        lines += [f"complete -c {_NAME} -n {condition} {_fish_flag(command, *item)}" for item in _flags(command)]
    return "\n".join(lines) + "\n"


def _fish_flag(command: Command, flag: str, entry: Flag) -> str:
    words = f"-l {flag} -d {_fish_quote(entry.text)}"
    if known := choices(entry.choices):
        return f"{words} -x -a {_fish_quote(' '.join(known))}"
    return f"{words} -r" if takes_value(command, flag, entry) else words


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS: Final[Mapping[str, Callable[[], str]]] = {"bash": bash, "zsh": zsh, "fish": fish}
