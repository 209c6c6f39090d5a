"""`fakeapiserver status`: the servers in the background. Exits with 1 if no server runs."""

import json
from collections.abc import Callable, Sequence

from msgspec import Struct

from fakeapiserver.cli import background
from fakeapiserver.cli.arguments import UsageError, choice, read_boolean, read_into
from fakeapiserver.cli.complain import complain, refuse


class Options(Struct):
    """The command line of `status` and `stop`. Without a name, status shows all servers and stop ends `default`."""

    name: str = ""
    all: bool = False
    output: str = "text"


def read(arguments: Sequence[str], *, has_all: bool) -> Options:
    """Raises UsageError."""
    options = Options()
    flags: dict[str, Callable[[str], object]] = {"name": str, "output": choice("output", "text", "json")}
    if has_all:
        flags["all"] = read_boolean
    rest = read_into(options, arguments, flags)
    if rest:
        raise UsageError(f"unexpected argument {rest[0]!r}")
    return options


def main(arguments: Sequence[str]) -> int:
    """0; 1 if no such server runs; 2 for a wrong command line."""
    try:
        options = read(arguments, has_all=False)
        names = [options.name] if options.name else background.running()
        servers = [facts for name in names if (facts := background.Server(name).facts()) is not None]
    except UsageError as error:
        return refuse(error, "status")
    if options.output == "json":
        print(json.dumps(servers))
    for facts in servers if options.output == "text" else ():
        print(
            f"{facts['name']}: {facts['url']} as context {json.dumps(facts['context'])}, process {facts['pid']}, since "
            f"{facts['started']}\n  kubeconfig: {facts['kubeconfig']}\n  log: {facts['log']}"
        )
    if servers:
        return 0
    return complain(f"no server {options.name!r} runs" if options.name else "no server runs in the background", 1)
