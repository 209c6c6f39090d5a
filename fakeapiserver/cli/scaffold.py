"""`fakeapiserver init`, `create api`, `create webhook` and `manifests`, with kubebuilder's flags."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fakeapiserver.scaffold import create, manifests
from fakeapiserver.scaffold.project import checked_resource


def main(command: str, words: Sequence[str]) -> int:
    """0: done; 1: can't be done, or (`manifests --check`) files differ; 2: the command line is wrong."""
    flags = _parser(command, words).parse_args(words[1:] if command == "create" else words)
    try:
        paths: Sequence[Path] = flags.run(flags)
    except (ValueError, OSError, ImportError, SyntaxError) as error:
        print(f"fakeapiserver {command}: {error}", file=sys.stderr)
        return 1
    names = [str(path) for path in dict.fromkeys(paths)]
    if flags.output == "json":
        print(json.dumps({"files": names}))
    else:
        print("\n".join(names))
    return int(command == "manifests" and flags.check and bool(names))


def _parser(command: str, words: Sequence[str]) -> argparse.ArgumentParser:
    if command == "create":
        what = words[0] if words else ""
        makers: dict[str, Callable[[], argparse.ArgumentParser]] = {"api": _api, "webhook": _webhook}
        if what not in makers:
            print("usage: fakeapiserver create api|webhook [flags]", file=sys.stderr)
            raise SystemExit(2)
        parser = makers[what]()
    else:
        parser = {"init": _init, "manifests": _manifests}[command]()
    parser.add_argument("--folder", type=Path, default=Path(), help="the project; the current folder by default")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    return parser


def _init() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("fakeapiserver init", description="Begins an operator's project.")
    parser.add_argument("--domain", default="my.domain", help="behind the kinds' groups, such as example.com")
    parser.add_argument(
        "--repo", default="", help="the project's name; a URL's last word counts. Default: the folder's"
    )
    parser.set_defaults(run=lambda flags: create.init(flags.folder, flags.domain, flags.repo))
    return parser


def _api() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("fakeapiserver create api", description="Adds a version of a kind.")
    _kind(parser)
    parser.add_argument("--namespaced", type=_bool, default=True, metavar="true|false")
    for name in ("controller", "resource"):
        parser.add_argument(f"--{name}", type=_bool, nargs="?", const=True, default=True, metavar="true|false")

    def run(flags: argparse.Namespace) -> Sequence[Path]:
        wanted = checked_resource(flags.group, flags.version, flags.kind, flags.plural, namespaced=flags.namespaced)
        return create.create_api(flags.folder, wanted, controller=flags.controller, resource=flags.resource)

    parser.set_defaults(run=run)
    return parser


def _webhook() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("fakeapiserver create webhook", description="Adds webhooks of a kind.")
    _kind(parser)
    for name in ("defaulting", "programmatic-validation", "conversion"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--spoke", default="", help="with --conversion: the version that isn't --version")

    def run(flags: argparse.Namespace) -> Sequence[Path]:
        return create.create_webhook(
            flags.folder,
            checked_resource(flags.group, flags.version, flags.kind, flags.plural, namespaced=True),
            defaulting=flags.defaulting,
            validation=flags.programmatic_validation,
            conversion=flags.conversion,
            spoke=flags.spoke,
        )

    parser.set_defaults(run=run)
    return parser


def _manifests() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "fakeapiserver manifests", description="Brings config/ up to date with the code, and prints what changed."
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something would")
    parser.set_defaults(run=lambda flags: (manifests.differences if flags.check else manifests.write)(flags.folder))
    return parser


def _kind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", default="", help="without the domain, such as apps")
    parser.add_argument("--version", required=True, help="such as v1alpha1")
    parser.add_argument("--kind", required=True, help="such as CronJob")
    parser.add_argument("--plural", default="", help="such as cronjobs; made of the kind by default")


def _bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text == "true"
