"""`fakeapiserver init`, `create api`, `create webhook` and `manifests`, with kubebuilder's flags."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from fakeapiserver.cli.arguments import OUTPUTS, UsageError, choice, read_boolean, read_into, read_list, text
from fakeapiserver.cli.complain import refuse
from fakeapiserver.scaffold import create, manifests
from fakeapiserver.scaffold.project import InvalidName, ProjectResource, checked_resource

# What to do after a command.
_NEXT: Final = {
    "init": "fakeapiserver create api --group apps --version v1 --kind Welcome",
    "create": "edit the files above, then `make manifests` and `make test`",
}


class Options(Struct):
    """The flags of all four commands; which of them a command has is in FLAGS."""

    folder: Path = Path()
    output: str = "text"
    domain: str = "my.domain"
    repo: str = ""
    group: str = ""
    version: str = ""
    kind: str = ""
    plural: str = ""
    external_api_domain: str | None = None
    fakeapiserver_source: str = ""
    force: bool = False
    namespaced: bool = True
    resource: bool = True
    controller: bool = True
    defaulting: bool = False
    programmatic_validation: bool = False
    conversion: bool = False
    spoke: tuple[str, ...] = ()
    check: bool = False


_Readers = Mapping[str, Callable[[str], object]]
_PROJECT: Final[_Readers] = {
    "folder": lambda value: Path(text("folder")(value)),
    "output": choice("output", *OUTPUTS),
}
_KIND: Final[_Readers] = {
    **_PROJECT,
    "group": str,
    "version": text("version"),
    "kind": text("kind"),
    "plural": str,
    "force": read_boolean,
    "external-api-domain": text("external-api-domain"),
}
FLAGS: Final[Mapping[str, _Readers]] = {
    "init": {
        **_PROJECT,
        "domain": text("domain"),
        "repo": str,
        "fakeapiserver-source": text("fakeapiserver-source"),
        "force": read_boolean,
    },
    "create api": {**_KIND, **dict.fromkeys(("namespaced", "resource", "controller"), read_boolean)},
    "create webhook": {
        **_KIND,
        **dict.fromkeys(("defaulting", "programmatic-validation", "conversion"), read_boolean),
        "spoke": read_list,
    },
    "manifests": {**_PROJECT, "check": read_boolean},
}


def main(command: str, words: Sequence[str]) -> int:
    """0: done; 1: can't be done, or (`manifests --check`) files differ; 2: the command line is wrong."""
    try:
        name, options = parse(command, words)
        paths = _RUN[name](options)
    except (UsageError, InvalidName) as error:
        return refuse(error, f"{command} {words[0]}" if command == "create" and words else command)
    except (ValueError, OSError) as error:
        print(f"fakeapiserver {command}: {_sentence(error)}", file=sys.stderr)
        return 1
    names = [str(path) for path in dict.fromkeys(paths)]
    if options.output == "json":
        print(json.dumps({"files": names}))
    elif names:
        print("\n".join(names))
        if command in _NEXT:
            print(f"\nNext: {_NEXT[command]}")
    return int(options.check and bool(names))


def parse(command: str, words: Sequence[str]) -> tuple[str, Options]:
    """The command, such as `create api`, and its flags. Raises UsageError."""
    name, rest = command, words
    if command == "create":
        if not words or f"create {words[0]}" not in FLAGS:
            raise UsageError(f"create api or create webhook{f', not create {words[0]}' if words else ''}: choose one")
        name, rest = f"create {words[0]}", words[1:]
    options = Options()
    if others := read_into(options, rest, FLAGS[name]):
        raise UsageError(f"unexpected argument {others[0]!r}")
    if missing := [f"--{flag}" for flag in ("version", "kind") if flag in FLAGS[name] and not getattr(options, flag)]:
        raise UsageError(f"{name} needs {' and '.join(missing)}, e.g. --version=v1alpha1 --kind=CronJob")
    return name, options


def _init(options: Options) -> Sequence[Path]:
    return create.init(
        options.folder, options.domain, options.repo, source=options.fakeapiserver_source, force=options.force
    )


def _create_api(options: Options) -> Sequence[Path]:
    return create.create_api(
        options.folder,
        _kind(options),
        controller=options.controller,
        resource=options.resource,
        force=options.force,
        external_domain=options.external_api_domain,
    )


def _create_webhook(options: Options) -> Sequence[Path]:
    return create.create_webhook(
        options.folder,
        _kind(options),
        create.Webhooks(options.defaulting, options.programmatic_validation, options.conversion, options.spoke),
        force=options.force,
        external_domain=options.external_api_domain,
    )


def _manifests(options: Options) -> Sequence[Path]:
    return (manifests.differences if options.check else manifests.write)(options.folder)


_RUN: Final[Mapping[str, Callable[[Options], Sequence[Path]]]] = {
    "init": _init,
    "create api": _create_api,
    "create webhook": _create_webhook,
    "manifests": _manifests,
}


def _kind(options: Options) -> ProjectResource:
    return checked_resource(options.group, options.version, options.kind, options.plural, namespaced=options.namespaced)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)
