"""The output of `fakeapiserver --help` and `fakeapiserver help`: the commands and the topics."""

import textwrap
from collections.abc import Mapping
from typing import Final

from fakeapiserver.cli.manual.topics import TOPICS

WIDTH: Final = 100
SUMMARIES: Final = {
    "serve": "runs an API server until Ctrl-C",
    "run": "runs a command beside an API server of its own",
    "status": "shows the servers that serve --background started",
    "stop": "ends servers that serve --background started",
    "faults": "lets requests and watches of a server's clients go wrong",
    "requests": "shows the last requests of a server's clients",
    "state": "saves, loads, compares and exports the state of a server",
    "clock": "shows, stops, advances and sets the clock of a server",
    "ui": "opens the page that shows what happened in a server, and why",
    "clone": "copies the objects of a live cluster into a file",
    "diff-versions": "shows what changed between two Kubernetes versions, also for a command",
    "sweep": "finds the bugs of an operator by running it through a scenario with surprises",
    "explore": "finds the bugs of an operator by trying the specs that users might write",
    "controller-manager": "runs the bundled controllers for any API server",
    "nodes": "simulates nodes and a scheduler for any API server",
    "envtest-assets": "writes kube-apiserver, etcd and kubectl for Go's envtest",
    "init": "begins an operator's project in Python",
    "create api": "adds a kind and its controller to a project",
    "create webhook": "adds webhooks to a kind of a project",
    "manifests": "brings a project's manifests up to date with its code",
    "version": "prints the versions of this package and of Kubernetes",
    "completion": "prints a script that completes commands, flags and values",
    "help": "explains a topic or a command",
}


def overview() -> str:
    """Returns the output of `fakeapiserver --help`."""
    topics = textwrap.fill(
        ", ".join(TOPICS), WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    return (
        "usage: fakeapiserver COMMAND [FLAG ...]\n\nA Kubernetes API server to test against.\n\ncommands:\n"
        f"{_rows(SUMMARIES)}\n"
        "`fakeapiserver COMMAND --help` lists a command's flags, `fakeapiserver help TOPIC` explains a topic:\n"
        f"{topics}\n"
    )


def help_list() -> str:
    """Returns the output of `fakeapiserver help`."""
    topics = {name: topic.summary for name, topic in TOPICS.items()}
    return f"usage: fakeapiserver help [TOPIC | COMMAND]\n\ntopics:\n{_rows(topics)}\ncommands:\n{_rows(SUMMARIES)}"


def _rows(rows: Mapping[str, str]) -> str:
    width = max(map(len, rows)) + 2
    return "".join(f"  {name:{width}}{summary}\n" for name, summary in rows.items())
