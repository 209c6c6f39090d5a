"""`fakeapiserver version` and `--version`."""

import json
import sys
from collections.abc import Sequence

from msgspec import Struct

from fakeapiserver import __version__
from fakeapiserver.apis.recorded import known_versions, release_of
from fakeapiserver.cli.arguments import OUTPUTS, UsageError, choice, read_into
from fakeapiserver.cli.complain import refuse


class Options(Struct):
    output: str = "text"


def main(arguments: Sequence[str]) -> int:
    """0; 2 for a wrong command line."""
    options = Options()
    try:
        if others := read_into(options, arguments, {"output": choice("output", *OUTPUTS)}):
            raise UsageError(f"unexpected argument {others[0]!r}")
    except UsageError as error:
        return refuse(error, "version")
    if options.output == "json":
        print(json.dumps(facts()))
    else:
        print(text())
    return 0


def text() -> str:
    return f"fakeapiserver {__version__} (Kubernetes {release_of()})"


def facts() -> dict[str, object]:
    older = {version.removeprefix("v"): release_of(version) for version in known_versions()}
    python = ".".join(map(str, sys.version_info[:3]))
    return {"fakeapiserver": __version__, "kubernetes": release_of(), "kubernetesVersions": older, "python": python}
