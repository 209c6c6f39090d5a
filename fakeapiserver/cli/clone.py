"""`fakeapiserver clone`: copies the objects of a live cluster into a file that `serve --load` takes. It sends GET and nothing else."""

import gzip
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from fakeapiserver.cli.arguments import UsageError, read_boolean, read_into, read_list, text
from fakeapiserver.cli.checks import check_file
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.serve import run_loop
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.errors import StatusError
from fakeapiserver.state import cloning
from fakeapiserver.state.found import Gathered
from fakeapiserver.transport.files import write_file
from fakeapiserver.transport.round_trip import TransportError

FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "kubeconfig": text("kubeconfig"),
    "context": text("context"),
    "namespace": read_list,
    "all-namespaces": read_boolean,
    "cluster-scoped": read_boolean,
    "with-secrets": read_boolean,
}
# Requests each second, as kubectl has it: a clone should not be noticed by those who use the cluster.
_QPS: Final = 50.0


class Options(Struct):
    """The command line."""

    kubeconfig: str = ""
    context: str = ""
    namespace: tuple[str, ...] = ()
    all_namespaces: bool = False
    cluster_scoped: bool = False
    with_secrets: bool = False


def main(arguments: Sequence[str]) -> int:
    """0; 1 if the cluster can't be read or the file can't be written; 2 for a wrong command line."""
    try:
        options, path = _parse(arguments)
        config = _config(options)
    except (UsageError, ValueError) as error:
        return refuse(error, "clone")
    except OSError as error:
        return complain(str(error), 1)
    try:
        return run_loop(_run(options, config, path))
    except (StatusError, TransportError, LookupError, OSError, ValueError) as error:
        return complain(f"the cluster of context {options.context} can't be cloned: {error}", 1)


def _parse(arguments: Sequence[str]) -> tuple[Options, Path]:
    """Raises UsageError."""
    options = Options()
    names = read_into(options, arguments, FLAGS)
    if len(names) != 1:
        raise UsageError("clone needs the name of a file to write, and no other: fakeapiserver clone shop.json.gz …")
    if not options.context:
        raise UsageError("--context is missing: name the kubeconfig's context to read; the current one is never taken")
    if bool(options.namespace) == options.all_namespaces:
        raise UsageError("say what to read: --namespace=NAME,… or --all-namespaces")
    path = Path(names[0])
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{path} can't be written: name a file in a folder that exists")
    return options, path


def _config(options: Options) -> RESTConfig:
    """Raises UsageError for a kubeconfig that has no such context."""
    if options.kubeconfig:
        check_file("kubeconfig", Path(options.kubeconfig))
    config = kubeconfig.load(options.kubeconfig or None, context=options.context)
    return config.with_(user_agent="fakeapiserver-clone", qps=_QPS, burst=2 * int(_QPS))


async def _run(options: Options, config: RESTConfig, path: Path) -> int:
    wanted = cloning.Wanted(options.namespace, options.cluster_scoped, options.with_secrets)
    progress = _Progress()
    try:
        gathered = await cloning.clone(config, f"context {options.context}", wanted, progress.show)
    finally:
        progress.end()
    _write(path, gathered)
    for untaken in gathered.untaken:
        print(f"not read: {untaken}", file=sys.stderr)
    secrets = "" if options.with_secrets else "; the values of Secrets are empty"
    print(f"{len(gathered.objects)} objects are in {path}{secrets}. fakeapiserver serve --load={path}")
    return 0


def _write(path: Path, gathered: Gathered) -> None:
    """A List as `kubectl get -o json` prints it, an item in each line. Raises OSError."""
    lines = b",\n".join(msgspec.json.encode(found.obj) for found in gathered.objects)
    content = b'{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[\n%b\n]}\n' % lines
    write_file(path, gzip.compress(content, 6, mtime=0) if path.suffix == ".gz" else content, 0o600)


class _Progress:
    """A line on a terminal that changes as the clone goes on."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, resource: str, objects: int) -> None:
        if self._shown:
            print(f"\r\x1b[K{objects} objects; reading {resource}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
