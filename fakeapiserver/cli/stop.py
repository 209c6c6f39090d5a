"""`fakeapiserver stop`: ends servers in the background and waits until they are gone. Exits with 1 if no server runs."""

import json
from collections.abc import Sequence

from fakeapiserver.cli import background
from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.status import read


def main(arguments: Sequence[str]) -> int:
    """0; 1 if no such server runs or if it doesn't end; 2 for a wrong command line."""
    try:
        options = read(arguments, has_all=True)
        names = background.running() if options.all else [options.name or background.DEFAULT_NAME]
        stopped = [name for name in names if background.Server(name).stop()]
    except UsageError as error:
        return refuse(error, "stop")
    except OSError as error:
        return complain(str(error), 1)
    if options.output == "json":
        print(json.dumps({"stopped": stopped}))
    if stopped or options.all:
        return 0
    return complain(f"no server {names[0]!r} runs", 1)
