"""The simulator's shell: what scripts print, how they end, and what isn't followed."""

import pytest

from fakeapiserver.nodes.commands import Process, Run, run_of
from fakeapiserver.nodes.shell.events import Surroundings
from fakeapiserver.nodes.shell.syntax import parse
from fakeapiserver.nodes.shell.tree import NotFollowed

SURROUNDINGS = Surroundings(
    environment=(("HOME", "/root"), ("SPACED", "a  b")),
    files=(("/etc/app/one", "1\n"), ("/etc/app/two", "2\n")),
    directories=("/etc/app",),
    host="web-0",
)


def process(script: str) -> Process:
    return Process(("sh", "-c", script), SURROUNDINGS)


def printed(script: str) -> str:
    return "\n".join(line for _, line in process(script).lines(0))


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo hi", "hi"),
        ("echo -n a; echo b", "ab"),
        (r"echo -e 'a\tb'", "a\tb"),
        (r"printf '%s-%03d\n' a 5 b 6", "a-005\nb-006"),
        ("echo a\\ b 'c  d' \"e $HOME\" # comment", "a b c  d e /root"),
        ('echo $SPACED; echo "$SPACED"', "a b\na  b"),
        ("X=1; echo ${X}2 ${Y:-none} ${X:+set} ${#HOME} $?", "12 none set 5 0"),
        ("X=1 printenv X; echo [$X]", "1\n[]"),
        ('echo $(echo a; echo b) "$(seq 1 2)"', "a b 1\n2"),
        ("echo $((2 * (3 + 4) % 5)) $((-7 / 2)) $((1 < 2))", "4 -3 1"),
        ("true && echo yes || echo no; false && echo yes || echo no", "yes\nno"),
        ("if false; then echo a; elif [ -f /etc/app/one ]; then echo b; else echo c; fi", "b"),
        ("for x in a 'b c'; do echo \"<$x>\"; done", "<a>\n<b c>"),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); [ $i = 2 ] && continue; echo $i; done", "1\n3"),
        ("for i in 1 2; do for j in a b; do [ $j = b ] && break 2; echo $i$j; done; done", "1a"),
        ("until [ -e /tmp/x ]; do touch /tmp/x; echo made; done", "made"),
        ("echo a > /tmp/f; echo b >> /tmp/f; cat < /tmp/f", "a\nb"),
        ("echo a > /dev/null; echo b >&2; echo c 2>&1 > /dev/stdout; cat /no 2> /dev/null", "b\nc"),
        ("(X=1; exit 3); echo $? [$X]", "3 []"),
        ("{ echo a; echo b; } > /tmp/f; cat /tmp/f", "a\nb"),
        ("! true; echo $?; ! ! true; echo $?", "1\n0"),
        ("sh -c 'echo $0 $1 $# $@' name x y", "name x 2 x y"),
        ("cd /etc/app && cat one && pwd && hostname", "1\n/etc/app\nweb-0"),
        ("ls /etc/app; echo /etc/app/*", "one\ntwo\n/etc/app/one /etc/app/two"),
        ("echo a \\\n  b", "a b"),
        ("set -e; false || echo goes on; false; echo not", "goes on"),
        ("cat < /no; echo $?", "sh: can't open /no: no such file\n1"),
        ("echo ${X?is missing}; echo not", "sh: X: is missing"),
    ],
)
def test_scripts_print(script: str, output: str) -> None:
    assert printed(script) == output


@pytest.mark.parametrize(
    ("script", "run"),
    [
        ("exit", Run(0)),
        ("exit 256", Run(0)),
        ("exit 3; sleep 9", Run(0, 3)),
        ("false; exit", Run(0, 1)),
        ("exec sleep 9; exit 1", Run(9)),
        ("sleep 1m 2; sleep .5", Run(62.5)),
        ("set -e; (exit 4); sleep 9", Run(0, 4)),
        ("trap 'exit 0' TERM; sleep inf", Run(None)),
        ("until nslookup db; do sleep 2; done", Run(0)),
        ("until false; do echo waiting; sleep 2; done", Run(None)),
        ("while :; do :; done", Run(None)),
        ("i=0; while true; do i=$((i+1)); done", Run(None)),
        ("while [ $(date +%s) -lt 30 ]; do sleep 10; done", Run(30)),
    ],
)
def test_scripts_end(script: str, run: Run) -> None:
    assert run_of(process(script)) == run


@pytest.mark.parametrize(
    "script",
    [
        "echo a | cat",
        "sleep 5 &",
        "f() { echo; }",
        "case a in a) ;; esac",
        "cat <<EOF",
        "echo `date`",
        "echo ${X%a}",
        "echo $((1/0))",
        "echo $RANDOM",
        "./own",
        "'",
        '"',
        "$((",
        "$(",
        "if true",
        "for",
        "done",
        "(" * 100 + "true" + ")" * 100,
        "x=aaaaaaaa; while true; do x=$x$x; done",
        'x=\'sh -c "$x"\'; sh -c "$x"',
        "env -i true",
        "date -d yesterday",
        "[ a",
        "[ a -lt b ]",
        "seq 1 999999999",
    ],
)
def test_what_is_not_understood_is_not_followed(script: str) -> None:
    assert not run_of(process(script)).is_followed


@pytest.mark.parametrize(
    "script",
    [
        "while true; do seq 1 9999; done",
        "while true; do echo x; done",
        "for i in $(seq 1 9000); do for j in $(seq 1 9000); do echo $i; done; done",
        "! " * 5000 + "true",
        "[ " + "! " * 5000 + "a ]",
        "set -" + "e" * 60_000 + "1",
    ],
)
def test_a_run_has_bounds(script: str) -> None:
    assert sum(len(line) for _, line in process(script).lines(0)) < 2 << 20
    run_of(process(script))


def test_what_is_missing_is_named() -> None:
    with pytest.raises(NotFollowed, match="'done' is missing at the end"):
        parse("while true; do sleep 1")
