"""The help of `fakeapiserver diff-versions`."""

from collections.abc import Mapping
from typing import Final

from fakeapiserver.cli.manual import kube_apiserver_flags, serve_flags
from fakeapiserver.cli.manual.entry import Command, Flag

# Those of run, for each server.
FLAGS: Final = (
    *("nodes", "crds", "webhooks", "controllers", "seed", "load"),
    *("authorization-mode", "enable-admission-plugins", "disable-admission-plugins", "feature-gates", "runtime-config"),
)


def command(more: Mapping[str, Flag]) -> Command:
    """`more`: the flags that all commands have."""
    topics = (*serve_flags.OWN.values(), *kube_apiserver_flags.TOPICS.values())
    servers = {name: flag for topic in topics for name, flag in topic.items() if name in FLAGS}
    return Command(
        "diff-versions",
        "diff-versions OLD NEW [FLAG ...] [-- COMMAND [ARGUMENT ...]]",
        "Shows what changed between two minor versions of Kubernetes: resources, fields, defaults, feature gates. With COMMAND, such as a "
        "test suite, it runs that on a server of each version, with KUBECONFIG set, and shows what differs: exit status, refused "
        "requests, warnings, fields that the server adds to objects, objects at the end. What also differs between two runs on OLD is left "
        "out. The exit status is 3 if there are differences. The flags are those of run, for each of the servers.",
        {"Servers": {**servers, **more}},
    )
