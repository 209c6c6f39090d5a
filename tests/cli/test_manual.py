"""Tests the output of `--help`, `help` and `version`: every flag has an entry and a sentence, and the entries are right."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import pytest

from fakeapiserver import cli
from fakeapiserver.apis.recorded import NEWEST, read_table
from fakeapiserver.cli import clone, envtest_assets, explore, flags, scaffold, sweep
from fakeapiserver.cli.control import clock, faults, page, requests, state
from fakeapiserver.cli.controller_manager import command as controller_manager
from fakeapiserver.cli.manual import controller_manager_flags, kube_apiserver_flags
from fakeapiserver.cli.manual.choices import choices
from fakeapiserver.cli.manual.commands import commands
from fakeapiserver.cli.manual.overview import SUMMARIES
from fakeapiserver.cli.manual.page import command_page, topic_page
from fakeapiserver.cli.manual.topics import TOPICS
from fakeapiserver.cli.nodes import command as nodes
from fakeapiserver.cli.upgrade import diff_versions
from fakeapiserver.nodes.node import MAX_NODES
from fakeapiserver.server.options.config import Config

ALWAYS = {"help"}
ACCEPTED = {
    "serve": set(flags.flag_types()),
    "run": set(flags.flag_types()) - {"background", "name", "stop-with-stdin"},
    "status": {"name", "output", *ALWAYS},
    "stop": {"name", "all", "output", *ALWAYS},
    "faults": {*faults.FLAGS, *ALWAYS},
    "requests": {*requests.FLAGS, *ALWAYS},
    "state": {*state.FLAGS, *ALWAYS},
    "clock": {*clock.FLAGS, *ALWAYS},
    "ui": {*page.FLAGS, *ALWAYS},
    "clone": {*clone.FLAGS, *ALWAYS},
    "diff-versions": {*diff_versions.FLAGS, *ALWAYS},
    "sweep": {*sweep.FLAGS, *ALWAYS},
    "explore": {*explore.FLAGS, *ALWAYS},
    "controller-manager": set(controller_manager.flag_types()),
    "nodes": {*nodes.FLAGS, *ALWAYS},
    "envtest-assets": {*envtest_assets.FLAGS, *ALWAYS},
    **{name: {*table, *ALWAYS} for name, table in scaffold.FLAGS.items()},
    "version": {"output", *ALWAYS},
    "completion": ALWAYS,
    "help": ALWAYS,
}


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("name", commands())
class TestCommand:
    """Each command."""

    def test_every_accepted_flag_has_one_entry(self, name: str) -> None:
        entries = [flag for topic in commands()[name].topics.values() for flag in topic]
        assert len(entries) == len(set(entries))
        assert set(entries) == ACCEPTED[name]

    def test_every_entry_is_a_sentence(self, name: str) -> None:
        for topic in commands()[name].topics.values():
            for flag, entry in topic.items():
                assert re.fullmatch(r"[A-Z/*].*\.", entry.text), (flag, entry.text)

    def test_the_first_flags_have_a_default_and_an_example(self, name: str) -> None:
        command, page = commands()[name], command_page(name)
        first = page.partition("Flags that people use first:\n")[2].partition("\n\n")[0]
        for flag in command.first:
            entry = next(topic[flag] for topic in command.topics.values() if flag in topic)
            assert re.search(rf"^  --{flag}( |$)", first, re.MULTILINE)
            if entry.example:
                assert f"Example: {entry.example}" in first

    def test_help_has_one_usage_line(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        page = printed(capsys, *name.split(), "--help")
        assert page == command_page(name) == printed(capsys, *name.split(), "-h")
        assert [line for line in page.splitlines() if line.startswith("usage:")] == [
            f"usage: fakeapiserver {commands()[name].usage}"
        ]
        assert max(map(len, page.splitlines())) <= 100

    def test_help_shows_each_flag_once(self, name: str) -> None:
        shown = re.findall(r"^  --([\w-]+)", command_page(name), re.MULTILINE)
        assert sorted(shown) == sorted(ACCEPTED[name])


@pytest.mark.parametrize("name", ["serve", "run", "controller-manager"])
def test_there_are_ten_first_flags(name: str) -> None:
    assert len(commands()[name].first) == 10


def test_flags_without_effect_are_marked() -> None:
    accepted = set(flags.flag_types()) - set(flags.HEEDED)
    own = {"background", "help", "name", "output", "stop-with-stdin", "v", "version", "write-kubeconfig"}
    assert accepted - kube_apiserver_flags.WITHOUT_EFFECT == own
    page = command_page("serve")
    for name in kube_apiserver_flags.WITHOUT_EFFECT:
        assert re.search(rf"^  --{name}( \S+)? \*", page, re.MULTILINE), name


def test_the_controller_managers_flags_without_effect_are_marked() -> None:
    given = {name: controller_manager.parse([f"--{name}", *_value(name)]) for name in _without("kubeconfig")}
    warned = {name for name, options in given.items() if options.warnings}
    assert warned == controller_manager_flags.WITHOUT_EFFECT


def _without(*names: str) -> set[str]:
    return set(controller_manager.flag_types()) - {*names, "tls-cert-file", "tls-private-key-file"}


def _value(name: str) -> list[str]:
    """The recorded default, as a word of its own where one must follow."""
    kind = controller_manager.flag_types()[name]
    if kind == "bool" or kind.endswith("[=true]"):
        return []
    table = read_table(NEWEST, "controller_manager_flags.json")
    return [table["defaults"].get(name, "0").strip("[]") or ("127.0.0.1" if kind == "ip" else "x=true")]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)


def _plain(text: str) -> str:
    """A duration in seconds, other texts as they are."""
    try:
        return f"{flags.read_duration(text):g}"
    except flags.UsageError:
        return text


_PHRASES = {
    *(
        "none",
        "any name",
        "the issuer",
        "kept in memory",
        "no limit",
        "none is checked",
        "a new one",
        "the system's",
        "made of the kind",
        "none is emulated",
        "the minor version before",
    ),
    *(
        "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP",
        "a free port, which is printed",
        "a new folder, which is printed",
    ),
}


@pytest.mark.parametrize("flag", sorted(flags.HEEDED))
def test_defaults_are_those_of_the_server(flag: str) -> None:
    place, _ = flags.HEEDED[flag]
    value = attrgetter(place)(Config())
    entry = next(topic[flag] for topic in commands()["serve"].topics.values() if flag in topic)
    if isinstance(value, range):
        value = f"{value.start}-{value.stop - 1}"
    if flag == "kubernetes-version":
        value = value.removeprefix("v")
    if value in (None, "", (), {}) or entry.default in _PHRASES or flag == "service-account-issuer":
        assert entry.default in {"", *_PHRASES}
    elif flag == "service-account-max-token-expiration":
        assert (value, entry.default) == (0, "no limit")
    else:
        assert _plain(entry.default) == _text(value)


@pytest.mark.parametrize("name", TOPICS)
def test_topics(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "help", name)
    assert page.startswith(f"{name}: {TOPICS[name].summary}\n")
    assert topic_page(name) in page


def test_help_lists_topics_and_commands(capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "help")
    for name in (*TOPICS, *commands()):
        assert re.search(rf"^  {name} +\w", page, re.MULTILINE), name


def test_help_of_a_command_is_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "help", "create", "api") == command_page("create api")


def test_no_arguments_print_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "--help")
    assert cli.main([]) == 2
    assert capsys.readouterr().out == page
    for name in commands():
        assert f"\n  {name} " in page


def test_every_list_of_choices_has_values() -> None:
    entries = [
        entry for command in commands().values() for topic in command.topics.values() for entry in topic.values()
    ]
    for name in {*(entry.choices for entry in entries), *(command.arguments for command in commands().values())} - {""}:
        assert len(choices(name)) > 1, name


def test_versions_for_people_and_programs(capsys: pytest.CaptureFixture[str]) -> None:
    line = printed(capsys, "version")
    assert re.fullmatch(r"fakeapiserver \S+ \(Kubernetes v1\.37\.\d+\)\n", line)
    assert printed(capsys, "--version") == line
    facts: Mapping[str, Any] = json.loads(printed(capsys, "version", "--output", "json"))
    assert facts["kubernetes"] in line
    assert [*facts["kubernetesVersions"]] == ["1.33", "1.34", "1.35", "1.36", "1.37"]
    assert printed(capsys, "serve", "--version") == line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serv"], "there is no command 'serv'; did you mean serve?"),
        (["frobnicate"], "there is no command 'frobnicate' (see fakeapiserver --help)"),
        (["help", "authentification"], "did you mean authentication?"),
        (["serve", "--node=3"], "unknown flag: --node; did you mean --nodes?"),
        (["nodes", "--crds=x"], "unknown flag: --crds; it belongs to serve, run and diff-versions"),
        (["serve", "--controllers=deploymnt-controller"], "did you mean deployment-controller?"),
        (["serve", "--authorization-mode=rback"], "did you mean RBAC?"),
        (["serve", "--enable-admission-plugins=AlwaysPullImage"], "did you mean AlwaysPullImages?"),
        (["serve", "--output=jsn"], "did you mean json?"),
        (["controller-manager", "--kube-config=x"], "unknown flag: --kube-config; did you mean --kubeconfig?"),
    ],
)
def test_what_was_probably_meant(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_serving_reads_nothing_of_the_manual() -> None:
    """Its entries take time to load, which a start doesn't have."""
    shown = "[name for name, module in sys.modules.items() if '.manual.' in name and type(module) is type(sys)]"
    code = f"import sys; import fakeapiserver.cli.serve as serve; serve.main; print({shown})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_as_many_nodes_as_can_be_simulated() -> None:
    assert flags.MOST_NODES == MAX_NODES


def test_every_command_has_a_summary() -> None:
    assert [*SUMMARIES] == [*commands()]


def test_the_list_of_commands_is_printed_without_the_flags() -> None:
    """Users type this command first, so it loads nothing that it doesn't show."""
    shown = "[n for n, module in sys.modules.items() if type(module) is type(sys) and (n == 'msgspec' or 'flags' in n)]"
    code = f"import sys; from fakeapiserver import cli; cli.main(['--help']); print({shown})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")
