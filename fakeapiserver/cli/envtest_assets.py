"""`fakeapiserver envtest-assets`: a folder with kube-apiserver, etcd and kubectl, which envtest starts unmodified.

envtest is controller-runtime's way to test against an API server without a cluster, ported to other languages since. All of them
find the three programs in the folder that KUBEBUILDER_ASSETS names. Upstream: sigs.k8s.io/controller-runtime/pkg/envtest,
pkg/internal/testing/{process,controlplane}.
"""

import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

import fakeapiserver
from fakeapiserver.cli.complain import complain
from fakeapiserver.transport.certificates import write_file

USAGE: Final = """\
usage: fakeapiserver envtest-assets [DIR] [--output text|json] [--detached]

Writes kube-apiserver, etcd and kubectl (the one on the PATH) into DIR and prints the line for your shell:

    eval "$(fakeapiserver envtest-assets)"
    go test ./...

Without DIR it is a folder of this Python environment's own in the user's cache.
--output json   {"KUBEBUILDER_ASSETS": DIR, "kubectl": PATH or null}
--detached      the servers outlive the process that started them; otherwise they end with it, even when it is killed
"""
# The package's folder goes onto the path only to import it from the right place, so that it hides nothing of Python's own.
_KUBE_APISERVER: Final = (
    "import gc, sys; gc.disable(); sys.path.insert(0, {root!r}); import fakeapiserver; del sys.path[0]; "
    "from fakeapiserver.cli.kube_apiserver import main; sys.exit(main(sys.argv[2:], int(sys.argv[1])))"
)


class UsageError(ValueError):
    """The command line is wrong; the text is one sentence."""


class Options(Struct):
    """`folder` None: the default one."""

    folder: Path | None = None
    output: str = "text"
    detached: bool = False
    help: bool = False


def main(arguments: Sequence[str]) -> int:
    """0; 1 when the folder can't be written; 2 for a wrong command line."""
    try:
        options = parse(arguments)
    except UsageError as error:
        return complain(f"{error} (see fakeapiserver envtest-assets --help)", 2)
    if options.help:
        print(USAGE, end="")
        return 0
    if os.name != "posix":
        return complain("envtest-assets writes shell scripts, which this system doesn't run", 1)
    folder = (options.folder or default_folder()).absolute()
    try:
        kubectl = write(folder, detached=options.detached)
    except OSError as error:
        return complain(f"can't write {error.filename or folder}: {error.strerror}", 1)
    if kubectl is None:
        complain("there is no kubectl on the PATH; what needs none works all the same", 0)
    if options.output == "json":
        print(json.dumps({"KUBEBUILDER_ASSETS": str(folder), "kubectl": kubectl}))
    else:
        print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder))}")
    return 0


def parse(arguments: Sequence[str]) -> Options:
    options = Options()
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word in ("-h", "--help"):
            options.help = True
        elif word == "--detached":
            options.detached = True
        elif name == "--output":
            options.output = value if equals else words.pop(0) if words else ""
            if options.output not in ("text", "json"):
                raise UsageError(f"--output must be text or json, not {options.output!r}")
        elif word.startswith("-"):
            raise UsageError(f"unknown flag: {name}")
        elif options.folder is not None:
            raise UsageError(f"unexpected argument {word!r}: the folder is {str(options.folder)!r}")
        else:
            options.folder = Path(word)
    return options


def default_folder() -> Path:
    """One per Python environment, always the same."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    environment = hashlib.sha256(f"{sys.executable} {_root()}".encode()).hexdigest()[:8]
    return cache / "fakeapiserver" / f"envtest-assets-{fakeapiserver.__version__}-{environment}"


def write(folder: Path, *, detached: bool = False) -> str | None:
    """Writes the programs, each replaced in one step as tests may be running; returns where kubectl leads to. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    python = shlex.quote(sys.executable)
    # exec: the program must be the very process that gets the signals. $PPID is taken before Python starts, which takes a while.
    parent = "0" if detached else '"$PPID"'
    program = shlex.quote(_KUBE_APISERVER.format(root=str(_root())))
    stand_in = shlex.quote(str(Path(__file__).with_name("etcd_stand_in.py")))
    _script(folder / "kube-apiserver", f'{python} -E -P -c {program} {parent} "$@"')
    _script(folder / "etcd", f'{python} -I -S {stand_in} {parent} "$@"')
    return _link_kubectl(folder / "kubectl")


def _script(path: Path, command: str) -> None:
    write_file(path, f"#!/bin/sh\nexec {command}\n".encode(), 0o755)


def _link_kubectl(link: Path) -> str | None:
    """A link, not a copy: 60 MB, and programs of several names such as k3s look at the name they are called by."""
    elsewhere = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(part) != link.parent]
    found = shutil.which("kubectl", path=os.pathsep.join(elsewhere))
    link.unlink(missing_ok=True)
    if found is not None:
        link.symlink_to(os.path.abspath(found))
    return found


def _root() -> Path:
    """The folder that holds the package."""
    return Path(fakeapiserver.__file__).absolute().parent.parent
