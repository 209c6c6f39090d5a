"""Go programs speak protobuf to every built-in kind: client-go, controller-runtime, and Go's own encoders as the measure of ours."""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.schema.builtin import compile_builtin
from fakeapiserver.apimachinery.serializer import protobuf
from fakeapiserver.apis.protobuf import decoder, encoder, message_finder
from fakeapiserver.apis.scheme import load
from tests.clients.fetching import fetched

HERE = Path(__file__).parent
# One object of every built-in kind that can be created and listed.
KINDS = (HERE / "kinds.jsonl").read_text()
# Compiling Kubernetes' libraries for the first time takes minutes.
BUILD_SECONDS = 900

pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_SECONDS + 120)]


@pytest.fixture(scope="module")
def go_client(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program, built; skips where there is no Go new enough, or no way to its modules."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go on the PATH to build the client with")
    program = str(tmp_path_factory.mktemp("go") / "go_client")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    fetched([go, "build", "-buildvcs=false", "-o", program, "."], HERE / "go_client", environment)
    return program


def run(program: str, command: str, kubeconfig: str, stdin: str = "") -> str:
    done = subprocess.run(
        [program, command],
        input=stdin,
        env={**os.environ, "KUBECONFIG": kubeconfig},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# objects are read again as they were written: no controller may write or delete
@pytest.mark.fake_cluster(controllers=())
def test_client_go_uses_every_verb_on_every_kind(go_client: str, fake_cluster: Cluster) -> None:
    """Objects read, listed and watched are those written, and what is deleted goes; protobuf is all it accepts."""
    wanted = [json.loads(line)["resource"] for line in KINDS.splitlines()]
    assert run(go_client, "typed", fake_cluster.kubeconfig, KINDS).split() == wanted


def test_kinds_are_complete() -> None:
    """Every resource that can be created, listed and watched is in the file."""
    given = {
        (row["object"]["apiVersion"], row["resource"]) for row in map(json.loads, KINDS.splitlines())
    }  # fmt: skip
    served = {
        (str(gvr.group_version), gvr.resource)
        for gvr, row in load().resources.items()
        if {"create", "list", "watch"} <= row.verbs
    }
    assert given == served


def test_controller_runtime_runs_a_controller(go_client: str, fake_cluster: Cluster) -> None:
    """Leader election, the cache and its index, owned objects, status patches, finalizers."""
    run(go_client, "cached", fake_cluster.kubeconfig)


def test_informers_begin_with_a_stream(go_client: str, fake_cluster: Cluster) -> None:
    """Typed (protobuf), dynamic and metadata-only informers receive the existing objects, a change and a deletion."""
    run(go_client, "informed", fake_cluster.kubeconfig)


def test_encodes_and_decodes_random_objects_as_go_does(go_client: str) -> None:
    scheme, find = load(), message_finder()
    kinds = set()
    for line in run(go_client, "encode", "").splitlines():
        row = json.loads(line)
        obj, data = row["object"], base64.b64decode(row["protobuf"])
        api_version, kind = obj["apiVersion"], obj["kind"]
        name = find(api_version, kind)
        assert name is not None, f"{api_version} {kind} has no message"
        assert protobuf.envelope(api_version, kind, [encoder().message(name)(obj)]) == data, f"{kind}: {line}"
        resource = scheme.kinds.get(GroupVersionKind(*GroupVersion.parse(api_version), kind))
        decoded = protobuf.decode(data, find, decoder())
        if resource is not None:
            go_type = compile_builtin(scheme.definitions, resource.definition)
            go_type.decode(decoded)
            go_type.decode(obj)
            assert without_empty_lists(decoded) == without_empty_lists(obj), kind
        kinds.add((api_version, kind))
    assert len(kinds) > 130


def without_empty_lists(value: object) -> object:
    """Removes empty lists and nulls from maps, which protobuf can't distinguish from absent fields."""
    if isinstance(value, dict):
        return {key: without_empty_lists(item) for key, item in value.items() if item not in ([], None)}
    return [without_empty_lists(item) for item in value] if isinstance(value, list) else value
