"""`fakeapiserver envtest-assets`: a folder with kube-apiserver, etcd and kubectl, which envtest starts unmodified.

envtest is controller-runtime's way to test against an API server without a cluster, ported to other languages since. All of them
find the three programs in the folder that KUBEBUILDER_ASSETS names. Upstream: sigs.k8s.io/controller-runtime/pkg/envtest,
pkg/internal/testing/{process,controlplane}.
"""

import errno
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

import fakeapiserver
from fakeapiserver.apis.recorded import NEWEST, known_versions, minor_version, read_table, release_of
from fakeapiserver.cli.arguments import OUTPUTS, UsageError, choice, read_boolean, read_into, text
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.transport.files import write_file

# The package's folder goes onto the path only to import it from the right place, so that it hides nothing of Python's own.
_FIND: Final = "sys.path.insert(0, {root!r}); import fakeapiserver; del sys.path[0]; "
_KUBE_APISERVER: Final = (
    "import gc, sys; gc.disable(); {find}"
    "from fakeapiserver.cli import end_program; from fakeapiserver.cli.kube_apiserver import main; "
    "end_program(main(sys.argv[3:], int(sys.argv[1]), sys.argv[2]))"
)
_SETUP_ENVTEST: Final = (
    "import sys; {find}from fakeapiserver.cli.envtest_assets import main; sys.exit(main(sys.argv[1:]))"
)
_LARGEST_SCRIPT: Final = 50_000  # bytes
_SCRIPTS: Final = ("kube-apiserver", "etcd", "setup-envtest")
_PRINTS: Final = ("path", "env", "json", "overview")
# setup-envtest's other commands; as folders they would be surprises.
_REFUSED: Final = ("cleanup", "env", "installed", "sideload", "version")
_SHORT: Final = {"-p": "--print", "-i": "--installed-only", "-v": "--verbose"}
_VERSION: Final = re.compile(r"v?(1\.[0-9]{1,4})(\.([0-9]{1,4}|x|\*))?!?")
_PROCESSORS: Final = {"x86_64": "amd64", "aarch64": "arm64"}  # Go's names


class Options(Struct):
    """folder: where the programs go; None: a folder in the user's cache. version: a minor version such as v1.35. print: "" as the
    command does by default."""

    command: str = ""
    folder: Path | None = None
    version: str = NEWEST
    print: str = ""
    output: str = ""
    bin_dir: Path | None = None
    detached: bool = False
    installed_only: bool = False
    os: str = ""
    arch: str = ""
    force: bool = False
    use_env: bool = False
    verify: bool = True
    index: str = ""
    verbose: str = ""


FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "print": choice("print", *_PRINTS),
    "output": choice("output", *OUTPUTS),
    "bin-dir": lambda value: Path(text("bin-dir")(value)),
    "detached": read_boolean,
    "installed-only": read_boolean,
    "os": text("os"),
    "arch": text("arch"),
    "force": read_boolean,
    "use-env": read_boolean,
    "verify": read_boolean,
    "index": str,
    "verbose": str,
}


def main(arguments: Sequence[str]) -> int:
    """0; 1 when the folder can't be written; 2 for a wrong command line."""
    try:
        options = parse(arguments)
    except UsageError as error:
        return refuse(error, "envtest-assets")
    if options.command == "list":
        return _list(options)
    if os.name != "posix":
        return complain("envtest-assets writes shell scripts, which this system doesn't run", 1)
    if (
        options.use_env
        and (chosen := os.environ.get("KUBEBUILDER_ASSETS"))
        and (Path(chosen) / "kube-apiserver").exists()
    ):
        _print(options, Path(chosen), str(Path(chosen) / "kubectl"))
        return 0
    folder = _folder(options).absolute()
    try:
        kubectl = write(folder, detached=options.detached, version=options.version)
    except OSError as error:
        return complain(f"can't write {error.filename or folder}: {error.strerror or error}", 1)
    if kubectl is None:
        complain("there is no kubectl on the PATH; what needs none works all the same", 0)
    _print(options, folder, kubectl)
    return 0


def parse(arguments: Sequence[str]) -> Options:
    """Raises UsageError."""
    options = Options()
    words = read_into(options, [_long(word) for word in arguments], FLAGS)
    if words and words[0] in ("list", "use"):
        options.command = words.pop(0)
    if options.command == "use":
        options.version = read_version(words.pop(0) if words else "latest")
    elif not options.command and words:
        options.folder = _named_folder(words.pop(0))
    if words:
        raise UsageError(
            f"unexpected argument {words[0]!r}{f': the folder is {str(options.folder)!r}' if options.folder else ''}"
        )
    if options.folder and options.bin_dir:
        raise UsageError(
            f"the folder is both {str(options.folder)!r} and in --bin-dir {str(options.bin_dir)!r}: leave one out"
        )
    for flag, value, here in zip(("os", "arch"), (options.os, options.arch), platform(), strict=True):
        if value not in ("", here, "*"):
            raise UsageError(f"--{flag}: the programs run on {here} only, which this machine is, not on {value!r}")
    return options


def _long(word: str) -> str:
    """The long form of a short flag."""
    name, equals, value = word.partition("=")
    return f"{_SHORT[name]}{equals}{value}" if name in _SHORT else word


def _named_folder(word: str) -> Path:
    if word in _REFUSED:
        raise UsageError(f"envtest-assets has no command {word!r}; for a folder of this name, write ./{word}")
    return Path(word)


def read_version(selector: str) -> str:
    """The minor version that one of setup-envtest's selectors names, such as v1.35 for 1.35, 1.35.x, 1.35.4 and 1.35.x!. Raises
    UsageError for an unknown version."""
    if selector.removesuffix("!") in ("latest", "latest-on-disk"):
        return NEWEST
    known = ", ".join(version.removeprefix("v") for version in known_versions())
    match = _VERSION.fullmatch(selector)
    if match is None:
        raise UsageError(f"{selector!r} is not a version: write one such as 1.35, 1.35.x or latest; there are {known}")
    try:
        return minor_version(match[1])
    except ValueError:
        raise UsageError(f"there are no programs for Kubernetes {selector}: choose one of {known}") from None


def platform() -> tuple[str, str]:
    """This machine's operating system and processor, by Go's names."""
    system = os.uname()
    return system.sysname.lower(), _PROCESSORS.get(system.machine, system.machine)


def _list(options: Options) -> int:
    system = "/".join(platform())
    releases = [release_of(version) for version in reversed(known_versions())]
    if "json" in (options.output, options.print):
        print(json.dumps([{"version": release, "platform": system} for release in releases]))
    else:
        print("\n".join(f"(installed)  {release}  {system}" for release in releases))
    return 0


def _print(options: Options, folder: Path, kubectl: str | None) -> None:
    default = "overview" if options.command == "use" else "env"
    match options.print or {"json": "json", "text": "env", "": default}[options.output]:
        case "json":
            print(json.dumps({"KUBEBUILDER_ASSETS": str(folder), "kubectl": kubectl}))
        case "path":
            print(folder)
        case "env":
            print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder))}")
        case _:
            release = release_of(options.version).removeprefix("v")
            print(f"Version: {release}\nOS/Arch: {'/'.join(platform())}\nPath: {folder}")


def _folder(options: Options) -> Path:
    if options.folder is not None:
        return options.folder
    if options.bin_dir is None:
        return default_folder(options.version)
    release = release_of(options.version).removeprefix("v")
    # Not the name that setup-envtest gives: its programs may be there.
    return options.bin_dir / "k8s" / f"fakeapiserver-{release}-{'-'.join(platform())}"


def default_folder(version: str = NEWEST) -> Path:
    """A folder per Python environment and minor version, always the same."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    environment = hashlib.sha256(f"{sys.executable} {_root()}".encode()).hexdigest()[:8]
    name = f"envtest-assets-{fakeapiserver.__version__}-{environment}"
    return cache / "fakeapiserver" / (name if version == NEWEST else f"{name}-{version}")


def write(folder: Path, *, detached: bool = False, version: str = NEWEST) -> str | None:
    """Writes the programs, each replaced in one step as tests may be running, and returns the path of kubectl, or None. Raises
    OSError, also if one of the programs exists and isn't from here."""
    folder.mkdir(parents=True, exist_ok=True)
    _check_programs(folder)
    root = None if getattr(sys, "frozen", False) else _root()
    for name, script in scripts(shlex.quote(sys.executable), version, root=root, detached=detached).items():
        write_file(folder / name, script.encode(), 0o755)
    return _link_kubectl(folder / "kubectl")


def scripts(python: str, version: str, *, root: Path | None, detached: bool = False) -> dict[str, str]:
    """The programs by their names, as shell scripts. python: the interpreter, as a word of the shell. root: the folder that holds the
    package; None if the interpreter is the single file, whose modules are files for as long as it runs only."""
    # exec: the program must be the very process that gets the signals. $PPID is taken before Python starts, which takes a while.
    parent = "0" if detached else '"$PPID"'
    find, stand_in = "", "-m fakeapiserver.cli.etcd_stand_in"
    if root is not None:
        find = _FIND.format(root=str(root))
        stand_in = shlex.quote(str(root / "fakeapiserver/cli/etcd_stand_in.py"))
    commands = {
        "kube-apiserver": f"-E -P -c {shlex.quote(_KUBE_APISERVER.format(find=find))} {parent} {version}",
        "etcd": f"-I -S {stand_in} {parent}",
        "setup-envtest": f"-E -P -c {shlex.quote(_SETUP_ENVTEST.format(find=find))}",
    }
    programs = {name: f'exec {python} {command} "$@"\n' for name, command in commands.items()}
    # Without an interpreter: each envtest asks for it before it starts the server, which took a fifth of the start's processor time.
    shown = f"printf %s {shlex.quote(help_text(version))}"
    programs["kube-apiserver"] = f'[ "$*" = --help ] && {shown} && exit\n{programs["kube-apiserver"]}'
    return {name: f"#!/bin/sh\n{program}" for name, program in programs.items()}


def help_text(version: str) -> str:
    """A line for each flag of kube-apiserver, in which envtest looks for the flags that it wants to give."""
    flags: dict[str, str] = read_table(NEWEST, "flags.json")["flags"]
    lines = "\n".join(f"      --{name} {'' if kind == 'bool' else kind}".rstrip() for name, kind in flags.items())
    return f"fakeapiserver in the place of kube-apiserver {release_of(version)}.\n\nUsage:\n  kube-apiserver [flags]\n\nFlags:\n\n{lines}\n"


def _check_programs(folder: Path) -> None:
    """Raises FileExistsError if a program exists that this command didn't write, such as a real kube-apiserver."""
    for name in _SCRIPTS:
        path = folder / name
        if path.exists() and (path.stat().st_size > _LARGEST_SCRIPT or b"fakeapiserver" not in path.read_bytes()):
            raise FileExistsError(
                errno.EEXIST, "it exists and is not from this command; choose another folder", str(path)
            )


def _link_kubectl(link: Path) -> str | None:
    """A link, not a copy: 60 MB, and programs of several names such as k3s look at the name they are called by."""
    elsewhere = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(part) != link.parent]
    kubectl = shutil.which("kubectl", path=os.pathsep.join(elsewhere))
    if link.exists() and not link.is_symlink():  # a program that was put there
        return str(link)
    link.unlink(missing_ok=True)
    if kubectl is not None:
        link.symlink_to(os.path.abspath(kubectl))
    return kubectl


def _root() -> Path:
    """The folder that holds the package."""
    return Path(fakeapiserver.__file__).absolute().parent.parent
