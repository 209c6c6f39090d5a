"""The ways of a write and of a watch event are as short as ARCHITECTURE.md says: their stacks are recorded and compared with it."""

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from fakeapiserver import Cluster
from fakeapiserver.endpoints.verbs.watch import Form
from fakeapiserver.server.http.tls_transport import TLSTransport
from fakeapiserver.storage.mvcc import MVCC
from fakeapiserver.storage.watch import BufferedWatcher
from tests.plain_client import Client
from tests.shape.package_map import ROOT

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
APPLY: Final = f"{CONFIG_MAPS}/a?fieldManager=me&force=true"
MOST_FILES: Final = 8
MOST_FRAMES: Final = 12
LONGEST_CHAIN: Final = 30
Stack = list[tuple[str, str]]
ARCHITECTURE: Final = (ROOT / "ARCHITECTURE.md").read_text()


def rows(heading: str) -> list[str]:
    """The file of each row of the section's first table."""
    section = ARCHITECTURE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = section.partition("\n|---")[2].partition("\n\n")[0]
    return [f"fakeapiserver/{file}" for file in re.findall(r"^\| `([\w/.]+)` \|", table, re.MULTILINE)]


def stack() -> Stack:
    """File and function of the package's frames, outermost first."""
    frames: Stack = []
    frame = sys._getframe(2)
    while frame:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT / "fakeapiserver"):
            frames.insert(0, (path.relative_to(ROOT).as_posix(), frame.f_code.co_name))
        frame = frame.f_back  # type: ignore[assignment]
    # The loop of the server's thread isn't part of a request.
    start = next(
        (number for number, (file, _) in enumerate(frames) if file == "fakeapiserver/server/http/exchange.py"), 0
    )
    return frames[start:]


def recorded(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[Stack]:
    """Records the stack at each call of a method from now on."""
    stacks: list[Stack] = []
    method = getattr(owner, name)

    def recording(self: object, *args: Any, **options: Any) -> Any:
        stacks.append(
            [*stack(), (Path(sys.modules[owner.__module__].__file__ or "").relative_to(ROOT).as_posix(), name)]
        )
        return method(self, *args, **options)

    monkeypatch.setattr(owner, name, recording)
    return stacks


def files(frames: Stack) -> list[str]:
    return list(dict.fromkeys(file for file, _ in frames))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        Client(cluster).ask("POST", CONFIG_MAPS, config_map("a"))
        yield cluster


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.mark.parametrize(
    ("verb", "method", "path", "body", "content_type"),
    [
        ("create", "POST", CONFIG_MAPS, config_map("b"), "application/json"),
        ("update", "PUT", f"{CONFIG_MAPS}/a", config_map("a", key="update"), "application/json"),
        ("patch", "PATCH", APPLY, config_map("a", key="apply"), "application/apply-patch+yaml"),
        ("patch", "PATCH", APPLY.replace("/a?", "/new?"), config_map("new"), "application/apply-patch+yaml"),
        ("patch", "PATCH", f"{CONFIG_MAPS}/a", {"data": {"key": "merge"}}, "application/merge-patch+json"),
        ("patch", "PATCH", f"{CONFIG_MAPS}/a", {"data": {"key": "smp"}}, "application/strategic-merge-patch+json"),
    ],
)
def test_a_write_passes_the_files_of_the_table(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    method: str,
    path: str,
    body: object,
    content_type: str,
) -> None:
    stacks = recorded(monkeypatch, MVCC, "commit")
    Client(cluster).open(method, path, body, content_type=content_type).close()
    [frames] = stacks
    expected = [row.replace("/patch.py", f"/{verb}.py") for row in rows("The way of one request")]
    assert files(frames) == expected
    assert len(expected) <= MOST_FILES
    assert len(frames) <= MOST_FRAMES


def test_the_chain_calls_the_filters_of_the_table_in_their_order() -> None:
    section = ARCHITECTURE.partition("\n## The way of one request\n")[2].partition("\n## ")[0]
    table = re.findall(r"^\| `(\w+)` \| `server/filters/[\w/.]+`|^\| `(\w+)` \| `server/metrics", section, re.MULTILINE)
    filters = [first or second for first, second in table]
    tree = ast.parse((ROOT / "fakeapiserver" / "server" / "chain.py").read_text())
    [chain] = [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef) and node.name == "__call__"]
    assert (chain.end_lineno or 0) - chain.lineno + 1 <= LONGEST_CHAIN
    calls = sorted(
        (node for node in ast.walk(chain) if isinstance(node, ast.Call)),
        key=lambda node: node.lineno * 1000 + node.col_offset,
    )
    called = [
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "") for node in calls
    ]
    assert [name.lstrip("_") for name in called if name.lstrip("_") in filters] == filters
    assert len(filters) >= 9


def test_an_event_passes_the_files_of_the_table(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    offers = recorded(monkeypatch, BufferedWatcher, "offer")
    encodings = recorded(monkeypatch, Form, "event")
    writes = recorded(monkeypatch, TLSTransport, "write")
    client = Client(cluster)
    with closing(client.open("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion={cluster_revision(client)}")) as answer:
        Client(cluster).ask("POST", CONFIG_MAPS, config_map("event"))
        assert b'"event"' in answer.readline()
    [offer] = [frames for frames in offers if frames[-2:][0][1] == "publish"][:1]
    written = files(offer)[files(offer).index("fakeapiserver/storage/memory.py") :]
    [encoding], [write] = encodings, [frames for frames in writes if frames[0][1] == "push"]
    made = files(encoding)[files(encoding).index("fakeapiserver/storage/watch.py") :]
    way = [*written, *made, *files(write)]
    assert list(dict.fromkeys(way)) == rows("The way of one event")


def cluster_revision(client: Client) -> str:
    revision: str = client.ask("GET", CONFIG_MAPS)["metadata"]["resourceVersion"]
    return revision
