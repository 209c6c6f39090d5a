"""`fakeapiserver version` and `--version`."""

import json
import sys
from collections.abc import Sequence

from msgspec import Struct

from fakeapiserver import __version__
from fakeapiserver.apis.recorded import NEWEST, known_versions, read_table
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


def kubernetes(version: str = NEWEST) -> str:
    """The release that a minor version's tables are recorded from, such as v1.36.3."""
    release: str = read_table(version, "paths.json")["version"]["gitVersion"]
    return release


def text() -> str:
    return f"fakeapiserver {__version__} (Kubernetes {kubernetes()})"


def facts() -> dict[str, object]:
    older = {version.removeprefix("v"): kubernetes(version) for version in known_versions()}
    python = ".".join(map(str, sys.version_info[:3]))
    return {"fakeapiserver": __version__, "kubernetes": kubernetes(), "kubernetesVersions": older, "python": python}
