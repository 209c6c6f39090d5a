"""The programs that the simulator's shell follows, by name. Pure."""

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from fakeapiserver.nodes.shell.events import STDERR, Endless, Event, Exit, Steps
from fakeapiserver.nodes.shell.interpreter import Program, Shell
from fakeapiserver.nodes.shell.tree import NotFollowed

_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d{1,12}(?:\.\d{0,9})?|\.\d{1,9})([smhd]?)")
_FOREVER_SECONDS: Final = 1e9
_SHELL_OPTION: Final = re.compile(r"-[a-z]*")
_DATE_LETTERS: Final = frozenset("YmdHMSFTjaAbBpIy")
_MAX_NUMBERS: Final = 10_000
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "a": "\a", "b": "\b", "v": "\v", "f": "\f", "0": "\0"}
_ESCAPE: Final = re.compile(r"\\(.)")
_FORMAT: Final = re.compile(r"%(%|(-?\d{0,3})(?:\.\d{1,3})?([sdiu]))")
# Programs for a network, packages or files, which count as successful when a container runs them.
# fmt: off
_ASSUMED: Final = (
    "apk", "apt", "apt-get", "chmod", "chown", "cp", "curl", "dig", "git", "host",
    "install", "ln", "mount", "mv", "nc", "nslookup", "pip", "ping", "rsync", "sync",
    "sysctl", "telnet", "umask", "update-ca-certificates", "wait", "wget", "yum",
)
# fmt: on
# Of agnhost.
_SERVERS: Final = frozenset(("netexec", "pause", "porter", "serve-hostname", "test-webserver", "webhook"))


def _ends(code: int) -> Program:
    def program(shell: Shell, arguments: Sequence[str]) -> Steps:
        return code
        yield

    return program


def _runs_on(shell: Shell, arguments: Sequence[str]) -> Steps:
    raise Endless
    yield


def _agnhost(shell: Shell, arguments: Sequence[str]) -> Steps:
    """The program of Kubernetes' own tests, whose servers run on."""
    if arguments[:1] and arguments[0] in _SERVERS:
        raise Endless
    raise NotFollowed(f"agnhost {' '.join(arguments[:1])}")
    yield


def _assumed(name: str) -> Program:
    def program(shell: Shell, arguments: Sequence[str]) -> Steps:
        if not shell.surroundings.is_container:
            raise NotFollowed(name)
        return 0
        yield

    return program


def _shell(shell: Shell, arguments: Sequence[str]) -> Steps:
    """`sh -ec 'script' name argument`, or `sh` with a script on its standard input."""
    words, stops, script = [*arguments], False, None
    while words and _SHELL_OPTION.fullmatch(words[0]):
        option = words.pop(0)
        stops |= "e" in option
        if "c" in option:
            script = words.pop(0) if words else ""
    if script is not None:
        return (yield from shell.script(script, words or ("sh",), stops_on_failure=stops))
    if words:
        raise NotFollowed(words[0])
    return (yield from _session(shell))


def _session(shell: Shell) -> Steps:
    """Runs each line of the input. A shell that has no input isn't followed: nothing says what it is for."""
    waiting = yield from _prompted(shell)
    if not waiting and not shell.surroundings.is_terminal:
        raise NotFollowed("a shell without a script")
    shell.status = 0
    while waiting:
        lines, _line_break, rest = waiting.rpartition("\n")
        try:
            if lines.strip():
                yield from shell.lines(lines)
        except Exit as exit_:
            return exit_.code
        except NotFollowed as error:
            yield from shell.write(f"sh: {error}: not followed by the simulator\n", STDERR)
            shell.status = 127
        more = yield from _prompted(shell)
        waiting = rest + (more or ("\n" if rest else ""))
    return shell.status


def _prompted(shell: Shell) -> Generator[Event, str, str]:
    """The next lines, of which a terminal asks for each."""
    if shell.surroundings.is_terminal:
        yield from shell.write(f"{shell.variables['PWD']} # ", STDERR)
    return (yield from shell.read())


def _sleep(shell: Shell, arguments: Sequence[str]) -> Steps:
    """Several durations add up."""
    seconds = 0.0
    for text in arguments:
        match = _DURATION.fullmatch(text)
        if match is None and text not in ("infinity", "inf"):
            raise NotFollowed(f"sleep {text}")
        seconds += float(match[1]) * _UNITS[match[2]] if match else _FOREVER_SECONDS
    if seconds >= _FOREVER_SECONDS:
        raise Endless
    if not arguments:
        yield from shell.write("sleep: missing operand\n", STDERR)
        return 1
    yield from shell.sleep(seconds)
    return 0


# ------------------------------------------------------------------------- output


def _echo(shell: Shell, arguments: Sequence[str]) -> Steps:
    words, ends, escapes = [*arguments], "\n", False
    while words and words[0] in ("-n", "-e", "-E", "-ne", "-en"):
        option = words.pop(0)
        ends = "" if "n" in option else ends
        escapes = "e" in option or (escapes and "E" not in option)
    text = " ".join(words)
    yield from shell.write((_unescaped(text) if escapes else text) + ends)
    return 0


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[0]), text)


def _printf(shell: Shell, arguments: Sequence[str]) -> Steps:
    """The format is used again as long as there are arguments."""
    if not arguments:
        yield from shell.write("printf: usage: printf FORMAT [ARGUMENT]...\n", STDERR)
        return 1
    template, rest = _unescaped(arguments[0]), [*arguments[1:]]
    while True:
        left = len(rest)
        yield from shell.write(_FORMAT.sub(lambda match: _formatted(match, rest), template))
        if not rest or len(rest) == left:
            return 0


def _formatted(match: re.Match[str], rest: list[str]) -> str:
    if match[1] == "%":
        return "%"
    value = rest.pop(0) if rest else ""
    if match[3] != "s" and not re.fullmatch(r"[-+]?\d{1,18}", value):
        value = "0"
    width = int(match[2]) if match[2].strip("-") else 0
    fill = "0" if match[2].startswith("0") and match[3] != "s" else " "
    return value.ljust(-width) if width < 0 else value.rjust(width, fill)


def _date(shell: Shell, arguments: Sequence[str]) -> Steps:
    """In UTC, by the cluster's clock."""
    form = "+%a %b %e %H:%M:%S UTC %Y"
    for argument in arguments:
        if argument.startswith("+"):
            form = argument
        elif argument in ("-Iseconds", "-Is", "--iso-8601=seconds"):
            form = "+%Y-%m-%dT%H:%M:%S+00:00"
        elif argument not in ("-u", "--utc"):
            raise NotFollowed(f"date {argument}")
    now = shell.clock()
    moment = datetime.fromtimestamp(now, UTC)
    known = {"s": str(int(now)), "N": f"{int(now % 1 * 1e9):09}", "e": f"{moment.day:2}", "Z": "UTC", "%": "%"}

    def shown(match: re.Match[str]) -> str:
        return known.get(match[1]) or (moment.strftime(match[0]) if match[1] in _DATE_LETTERS else match[0])

    yield from shell.write(re.sub("%([A-Za-z%])", shown, form[1:]) + "\n")
    return 0


def _seq(shell: Shell, arguments: Sequence[str]) -> Steps:
    if not 1 <= len(arguments) <= 3 or not all(re.fullmatch(r"-?\d{1,9}", each) for each in arguments):
        raise NotFollowed(f"seq {' '.join(arguments)}")
    numbers = [int(each) for each in arguments]
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    last = numbers[-1]
    if step == 0 or abs(last - first) // abs(step) > _MAX_NUMBERS:
        raise NotFollowed(f"seq {' '.join(arguments)}")
    printed = range(first, last + (1 if step > 0 else -1), step)
    yield from shell.write("".join(f"{number}\n" for number in printed))
    return 0


# ------------------------------------------------------------------ what there is


def _env(shell: Shell, arguments: Sequence[str]) -> Steps:
    """Prints the environment; with a program it isn't followed."""
    if arguments:
        raise NotFollowed(f"env {arguments[0]}")
    printed = "".join(f"{name}={shell.variables[name]}\n" for name in sorted(shell.exported & shell.variables.keys()))
    yield from shell.write(printed)
    return 0


def _printenv(shell: Shell, arguments: Sequence[str]) -> Steps:
    if not arguments:
        return (yield from _env(shell, ()))
    values = [shell.variables[name] for name in arguments if name in shell.exported and name in shell.variables]
    yield from shell.write("".join(f"{value}\n" for value in values))
    return int(len(values) < len(arguments))


def _export(shell: Shell, arguments: Sequence[str]) -> Steps:
    for argument in arguments:
        name, assigned, value = argument.partition("=")
        if assigned:
            shell.assign(name, value)
        shell.exported.add(name)
    return 0
    yield


def _unset(shell: Shell, arguments: Sequence[str]) -> Steps:
    for name in arguments:
        shell.assign(name, "")
        shell.variables.pop(name, None)
    return 0
    yield


def _cat(shell: Shell, arguments: Sequence[str]) -> Steps:
    """Files that are mounted, or that the run has written; without a name its input."""
    status = 0
    for name in arguments or ("-",):
        path = shell.path(name)
        if name == "-":
            while text := (yield from shell.read()):
                yield from shell.write(text)
        elif path in shell.files:
            yield from shell.write(shell.files[path])
        elif path != "/dev/null":
            why = "Is a directory" if shell.is_directory(path) else "No such file or directory"
            yield from shell.write(f"cat: can't open '{name}': {why}\n", STDERR)
            status = 1
    return status


def _ls(shell: Shell, arguments: Sequence[str]) -> Steps:
    """Lists mounted directories and files; all others the simulator doesn't know."""
    if any(argument.startswith("-") and argument not in ("-1", "-a", "-A") for argument in arguments):
        raise NotFollowed(f"ls {' '.join(arguments)}")
    for name in [argument for argument in arguments if not argument.startswith("-")] or ["."]:
        path = shell.path(name)
        if path in shell.files:
            yield from shell.write(f"{name}\n")
        elif path == "/" or not shell.is_directory(path):
            raise NotFollowed(f"ls {name}")
        else:
            entries = {
                known[len(path) + 1 :].partition("/")[0]
                for known in (*shell.files, *shell.directories)
                if known.startswith(f"{path}/")
            }
            yield from shell.write("".join(f"{entry}\n" for entry in sorted(entries)))
    return 0


def _tail(shell: Shell, arguments: Sequence[str]) -> Steps:
    """`tail -f` follows its file for ever."""
    if not any(argument in ("-f", "-F", "--follow") for argument in arguments):
        raise NotFollowed("tail")
    raise Endless
    yield


def _touch(shell: Shell, arguments: Sequence[str]) -> Steps:
    for name in arguments:
        if not name.startswith("-"):
            shell.put(shell.path(name), shell.files.get(shell.path(name), ""))
    return 0
    yield


def _rm(shell: Shell, arguments: Sequence[str]) -> Steps:
    for name in arguments:
        shell.remove(shell.path(name))
    return 0
    yield


def _mkdir(shell: Shell, arguments: Sequence[str]) -> Steps:
    shell.directories |= {shell.path(name) for name in arguments if not name.startswith("-")}
    return 0
    yield


def _says(text: Callable[[Shell], str]) -> Program:
    def program(shell: Shell, arguments: Sequence[str]) -> Steps:
        if arguments:
            raise NotFollowed(arguments[0])
        yield from shell.write(text(shell) + "\n")
        return 0

    return program


# ------------------------------------------------------------------------- tests


def _test(shell: Shell, arguments: Sequence[str]) -> Steps:
    return 0 if _holds(shell, arguments) else 1
    yield


def _bracket(shell: Shell, arguments: Sequence[str]) -> Steps:
    if arguments[-1:] not in (["]"], ["]]"]):
        raise NotFollowed("[ without ]")
    return (yield from _test(shell, arguments[:-1]))


def _holds(shell: Shell, words: Sequence[str]) -> bool:
    negations = next((at for at, word in enumerate(words) if word != "!"), 0)
    if negations:
        return _holds(shell, words[negations:]) == (negations % 2 == 0)
    match words:
        case []:
            return False
        case [text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case ["-n", text]:
            return bool(text)
        case ["-f" | "-r" | "-e" | "-s" | "-d" as what, name]:
            path = shell.path(name)
            if what == "-d" or (what in ("-e", "-r") and path not in shell.files):
                return shell.is_directory(path)
            return path in shell.files and (what != "-s" or bool(shell.files[path]))
        case [left, "=" | "==", right]:
            return left == right
        case [left, "!=", right]:
            return left != right
        case [left, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" as operator, right]:
            if not all(re.fullmatch(r"\s*[-+]?\d{1,18}\s*", each) for each in (left, right)):
                raise NotFollowed(f"the numbers {left!r} and {right!r}")
            a, b = int(left), int(right)
            return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}[operator]
    raise NotFollowed(f"test {' '.join(words)}")


def _programs() -> Iterator[tuple[str, Program]]:
    yield from dict.fromkeys(("true", ":", "trap"), _ends(0)).items()
    yield "false", _ends(1)
    yield from dict.fromkeys(("sh", "bash", "ash", "dash"), _shell).items()
    yield "pause", _runs_on
    yield from ((name, _assumed(name)) for name in _ASSUMED)
    yield from {
        "[": _bracket,
        "[[": _bracket,
        "agnhost": _agnhost,
        "cat": _cat,
        "date": _date,
        "echo": _echo,
        "env": _env,
        "export": _export,
        "hostname": _says(lambda shell: shell.surroundings.host),
        "ls": _ls,
        "mkdir": _mkdir,
        "printenv": _printenv,
        "printf": _printf,
        "pwd": _says(lambda shell: shell.variables["PWD"]),
        "rm": _rm,
        "seq": _seq,
        "sleep": _sleep,
        "tail": _tail,
        "test": _test,
        "touch": _touch,
        "unset": _unset,
        "whoami": _says(lambda shell: "root"),
    }.items()


PROGRAMS: Final = dict(_programs())
