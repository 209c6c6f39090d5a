"""`fakeapiserver init`, `create api`, `create webhook` and `manifests`, with kubebuilder's flags."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from fakeapiserver.scaffold import create, manifests
from fakeapiserver.scaffold.project import checked_resource


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the command line in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(command: str, words: Sequence[str]) -> int:
    """0: done; 1: can't be done, or (`manifests --check`) files differ; 2: the command line is wrong."""
    flags = _parser(command, words).parse_args(words[1:] if command == "create" else words)
    try:
        paths: Sequence[Path] = flags.run(flags)
    except (ValueError, OSError) as error:
        print(f"fakeapiserver {command}: {_sentence(error)}", file=sys.stderr)
        return 1
    names = [str(path) for path in dict.fromkeys(paths)]
    if flags.output == "json":
        print(json.dumps({"files": names}))
    elif names:
        print("\n".join(names))
    return int(command == "manifests" and flags.check and bool(names))


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _parser(command: str, words: Sequence[str]) -> argparse.ArgumentParser:
    if command == "create":
        what = words[0] if words else ""
        makers: dict[str, Callable[[], argparse.ArgumentParser]] = {"api": _api, "webhook": _webhook}
        if what not in makers:
            known = what in ("-h", "--help")
            print("usage: fakeapiserver create api|webhook [flags]", file=sys.stdout if known else sys.stderr)
            raise SystemExit(0 if known else 2)
        parser = makers[what]()
    else:
        parser = {"init": _init, "manifests": _manifests}[command]()
    parser.add_argument("--folder", type=Path, default=Path(), help="the project; the current folder by default")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="how the changed files are listed")
    return parser


def _init() -> argparse.ArgumentParser:
    parser = _Parser("fakeapiserver init", description="Begins an operator's project.")
    parser.add_argument("--domain", default="my.domain", help="behind the kinds' groups, such as example.com")
    parser.add_argument(
        "--repo", default="", help="the project's name; a URL's last word counts. Default: the folder's"
    )
    parser.set_defaults(run=lambda flags: create.init(flags.folder, flags.domain, flags.repo))
    return parser


def _api() -> argparse.ArgumentParser:
    parser = _Parser("fakeapiserver create api", description="Adds a version of a kind, and its controller.")
    _kind(parser)
    _flag(parser, "namespaced", "objects are in namespaces; false: in the cluster")
    _flag(parser, "controller", "write a controller and its test")
    _flag(parser, "resource", "write the kind; false: a controller for a kind that is there, such as Deployment")

    def run(flags: argparse.Namespace) -> Sequence[Path]:
        return create.create_api(
            flags.folder,
            checked_resource(flags.group, flags.version, flags.kind, flags.plural, namespaced=flags.namespaced),
            controller=flags.controller,
            resource=flags.resource,
            force=flags.force,
            external_domain=flags.external_api_domain,
        )

    parser.set_defaults(run=run)
    return parser


def _webhook() -> argparse.ArgumentParser:
    parser = _Parser("fakeapiserver create webhook", description="Adds webhooks of a kind.")
    _kind(parser)
    parser.add_argument("--defaulting", action="store_true", help="fill in what was left out")
    parser.add_argument("--programmatic-validation", action="store_true", help="refuse what may not be")
    parser.add_argument(
        "--conversion", action="store_true", help="convert other versions from and to --version, the hub"
    )
    parser.add_argument("--spoke", default="", help="with --conversion: those versions, such as v2,v3; all by default")

    def run(flags: argparse.Namespace) -> Sequence[Path]:
        return create.create_webhook(
            flags.folder,
            checked_resource(flags.group, flags.version, flags.kind, flags.plural, namespaced=True),
            defaulting=flags.defaulting,
            validation=flags.programmatic_validation,
            conversion=flags.conversion,
            spokes=[word.strip() for word in flags.spoke.split(",") if word.strip()],
            force=flags.force,
            external_domain=flags.external_api_domain,
        )

    parser.set_defaults(run=run)
    return parser


def _manifests() -> argparse.ArgumentParser:
    parser = _Parser(
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
    parser.add_argument("--force", action="store_true", help="write over files that are there already")
    parser.add_argument(
        "--external-api-domain",
        help="the kind is of GROUP.DOMAIN, which somebody else defines, such as cert-manager.io",
    )


def _flag(parser: argparse.ArgumentParser, name: str, words: str) -> None:
    """As Go's: --controller, --controller=true, --controller=false."""
    parser.add_argument(
        f"--{name}",
        type=_bool,
        nargs="?",
        const=True,
        default=True,
        metavar="true|false",
        help=f"{words} (default: true)",
    )


def _bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text == "true"
