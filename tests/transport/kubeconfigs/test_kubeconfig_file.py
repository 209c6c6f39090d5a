"""Entries in a kubeconfig that others use as well: what is added, what stays, what is left afterwards."""

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapiserver.transport import kubeconfig_text
from fakeapiserver.transport.kubeconfig_text import Entries
from fakeapiserver.transport.kubeconfigs import kubeconfig, kubeconfig_file
from fakeapiserver.transport.kubeconfigs.kubeconfig_file import KubeconfigFile

USERS_OWN = """\
# production: don't touch
apiVersion: v1
kind: Config
clusters:
  # the big one
  - cluster: {server: "https://prod:6443", insecure-skip-tls-verify: true}  # a comment
    name: prod
contexts:
- context: &shared
    cluster: prod
    user: 'me'
  name: prod
- context: *shared
  name: same

current-context:   'prod'   # of course
preferences: {}
users:
- name: me
  user:
    token: |
      secret
# the end
"""
KUBECTLS = """\
apiVersion: v1
clusters: null
contexts: null
current-context: ""
kind: Config
users: null
"""
AS_JSON = json.dumps(yaml.safe_load(USERS_OWN), indent=2)
SHAPES = {
    "block": USERS_OWN,
    "block, CRLF": USERS_OWN.replace("\n", "\r\n"),
    "block, CR": USERS_OWN.replace("\n", "\r"),
    "byte order mark": "\ufeff" + USERS_OWN,
    "a document's start and end": f"---\n{USERS_OWN}...\n",
    "no final newline": USERS_OWN.rstrip("\n"),
    "ends in a block scalar": USERS_OWN.removesuffix("\n# the end\n"),
    "JSON": AS_JSON,
    "JSON in one line": json.dumps(yaml.safe_load(USERS_OWN)),
    "flow, trailing commas": "{clusters: [{name: a, cluster: {server: b,},},], users: [ ], contexts: [\n # none\n],}",
    "null lists": KUBECTLS,
    "lists without a value": "kind: Config\nclusters:\ncontexts: # none yet\nusers: ~\ncurrent-context:\n",
    "kind and version alone": "apiVersion: v1\nkind: Config",
    "a single list": "contexts:\n- {name: a, context: {}}\n",
    "complex keys": "? clusters\n: - name: a\n  - name: b\n? kind\n: Config\n",
    "anchors and tags": "kind: Config\nclusters:\n- &d !!map {name: a}\nusers: !!seq\n- name: b\nother: [*d]\n",
    "non-ASCII": "kind: Config\n# 世界\nclusters: [{name: é😀}]\ncurrent-context: é😀\n",
    "unknown keys": "kind: Config\nx-mine: [1, 2]\nclusters: []\nextensions:\n- name: a\n  extension: b\n",
    "empty": "",
    "only a comment": "# mine",
}


def config(name: str = "fake", server: str = "https://127.0.0.1:1") -> dict[str, Any]:
    return kubeconfig.render(server, authority=server.encode(), token="s3cret", name=name, user=name)


def entries(found: Any, name: str) -> dict[str, Any]:
    return {key: [item for item in found[key] if item["name"] == name] for key in ("clusters", "contexts", "users")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
class TestRoundTrip:
    """Whatever a kubeconfig looks like."""

    def test_the_entries_are_added_to_existing_ones(self, path: Path, text: str) -> None:
        path.write_bytes(text.encode())
        KubeconfigFile(path).add(config())
        old, new = yaml.safe_load(text) or {}, yaml.safe_load(path.read_bytes())
        assert new["current-context"] == "fake"
        for key in ("clusters", "contexts", "users"):
            assert [item["name"] for item in new[key]] == ["fake", *(item["name"] for item in old.get(key) or ())]
            assert new[key][1:] == (old.get(key) or [])
        assert {key: new[key] for key in old if key not in ("clusters", "contexts", "users", "current-context")} == {
            key: old[key] for key in old if key not in ("clusters", "contexts", "users", "current-context")
        }

    def test_removing_them_gives_the_same_bytes_back(self, path: Path, text: str) -> None:
        path.write_bytes(text.encode())
        file = KubeconfigFile(path)
        file.add(config())
        file.remove()
        assert path.read_bytes() == text.encode()

    def test_two_can_come_and_go_in_any_order(self, path: Path, text: str) -> None:
        for leaves_first in (0, 1):
            path.write_bytes(text.encode())
            files = [KubeconfigFile(path), KubeconfigFile(path)]
            files[0].add(config("one"))
            files[1].add(config("two"))
            files[leaves_first].remove()
            assert yaml.safe_load(path.read_bytes())["current-context"] == ("two", "one")[leaves_first]
            files[1 - leaves_first].remove()
            if path.exists():
                new, old = yaml.safe_load(path.read_bytes()) or {}, yaml.safe_load(text) or {}
                assert {key: value for key, value in new.items() if value} == {
                    key: value for key, value in old.items() if value
                }


@pytest.mark.parametrize(
    "shape", ["block", "block, CRLF", "block, CR", "byte order mark", "JSON", "JSON in one line", "no final newline"]
)
@pytest.mark.parametrize("leaves_first", [0, 1])
def test_the_rest_keeps_its_bytes_when_it_changed_meanwhile(path: Path, shape: str, leaves_first: int) -> None:
    path.write_bytes(SHAPES[shape].encode())
    files = [KubeconfigFile(path), KubeconfigFile(path)]
    files[0].add(config("a"))
    files[1].add(config("b", "https://127.0.0.1:2"))
    files[leaves_first].remove()
    files[1 - leaves_first].remove()
    assert path.read_bytes() == SHAPES[shape].encode()


def test_a_file_that_was_made_here_goes_with_the_last_entry(path: Path) -> None:
    files = [KubeconfigFile(path), KubeconfigFile(path)]
    files[0].add(config("a"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["current-context"] == "a"
    files[1].add(config("b"))
    files[0].remove()
    assert [item["name"] for item in json.loads(path.read_text())["users"]] == ["b"]
    files[1].remove()
    assert not list(path.parent.iterdir())


class TestSameName:
    def test_entries_of_others_come_back(self, path: Path) -> None:
        path.write_text(text := USERS_OWN.replace("*shared", "{cluster: prod}"))
        file = KubeconfigFile(path)
        file.add(config("prod"))
        found = yaml.safe_load(path.read_text())
        assert [len(entries(found, "prod")[key]) for key in ("clusters", "contexts")] == [1, 1]
        assert found["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
        file.remove()
        assert path.read_text() == text

    def test_what_they_are_needed_for_is_not_broken(self, path: Path) -> None:
        path.write_text(USERS_OWN)
        with pytest.raises(ValueError, match="no entries can be added"):
            KubeconfigFile(path).add(config("prod"))
        assert path.read_text() == USERS_OWN

    def test_they_come_back_when_the_file_changed_meanwhile(self, path: Path) -> None:
        path.write_text(AS_JSON)
        file = KubeconfigFile(path)
        file.add(config("prod"))
        path.write_text(path.read_text() + "\n")
        file.remove()
        assert path.read_text() == AS_JSON + "\n"

    def test_those_of_a_later_server_stay(self, path: Path) -> None:
        path.write_text(USERS_OWN)
        first, second = KubeconfigFile(path), KubeconfigFile(path)
        first.add(config())
        second.add(config(server="https://127.0.0.1:2"))
        first.remove()
        assert (
            entries(yaml.safe_load(path.read_text()), "fake")["clusters"][0]["cluster"]["server"]
            == "https://127.0.0.1:2"
        )
        second.remove()
        assert path.read_text() == USERS_OWN

    def test_those_of_a_killed_server_go_and_its_predecessor_is_current_again(self, path: Path) -> None:
        path.write_text(USERS_OWN)
        KubeconfigFile(path).add(config())
        file = KubeconfigFile(path)
        file.add(config(server="https://127.0.0.1:2"))
        file.remove()
        assert path.read_text() == USERS_OWN

    def test_a_file_of_a_killed_server_goes(self, path: Path) -> None:
        KubeconfigFile(path).add(config())
        file = KubeconfigFile(path)
        file.add(config(server="https://127.0.0.1:2"))
        file.remove()
        assert not path.exists()


def test_another_current_context_stays(path: Path) -> None:
    path.write_text(USERS_OWN)
    file = KubeconfigFile(path)
    file.add(config())
    path.write_text(path.read_text().replace('"fake"   #', "same   #"))
    file.remove()
    assert path.read_text() == USERS_OWN.replace("'prod'   #", "same   #")


def test_kubectls_way_of_writing_it_is_understood(path: Path) -> None:
    """kubectl decodes and encodes the whole file."""
    path.write_text(USERS_OWN)
    file = KubeconfigFile(path)
    file.add(config())
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text())))
    file.remove()
    assert yaml.safe_load(path.read_text()) == yaml.safe_load(USERS_OWN)


def test_a_link_and_the_mode_are_kept(path: Path) -> None:
    link = path.parent / "link"
    path.write_text(USERS_OWN)
    path.chmod(0o640)
    link.symlink_to("config")
    file = KubeconfigFile(link)
    file.add(config())
    assert link.is_symlink()
    assert "fake" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    file.remove()
    assert path.read_text() == USERS_OWN
    assert sorted(os.listdir(path.parent)) == ["config", "link"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("- a\n- b\n", "it holds a sequence, not a mapping"),
        ("just words\n", "it holds a scalar, not a mapping"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "its kind is Pod, not Config"),
        (
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Config\n",
            "its apiVersion is kubelet.config.k8s.io/v1beta1, not v1",
        ),
        ("name: my-project\nversion: 1\n", "it has neither kind: Config nor clusters, contexts or users"),
        ("a: [1\nb: 2\n", "line 2: "),
        ("a: 1\n\tb: 2\n", "line 2: "),
        (f"{USERS_OWN}---\n{USERS_OWN}", "it holds several documents"),
        ("kind: Config\nclusters: {a: b}\n", "its clusters are a mapping, not a list"),
        ("kind: Config\nusers: []\nusers: []\n", "it has users more than once"),
        ("kind: Config\ncurrent-context: [a]\n", "its current-context is a sequence"),
        ("kind: Config\nother: &a []\nusers: *a\n", "is written in a way that no entries can be added to"),
        ("kind: Config\nclusters: &a []\nother: *a\n", "is written in a way that no entries can be added to"),
        ("[" * 100_000, "is not a kubeconfig"),
        (b"\x89PNG\r\n\x1a\n\0\0", "it isn't text in UTF-8"),
        (b"a: \0", "it has characters that YAML doesn't allow"),
    ],
)
def test_what_is_no_kubeconfig_is_refused_and_left_alone(path: Path, content: str | bytes, problem: str) -> None:
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(content)
    for action in (lambda: KubeconfigFile(path).check("fake"), lambda: KubeconfigFile(path).add(config())):
        with pytest.raises(ValueError, match=f"^{path} ") as refused:
            action()
        assert problem in str(refused.value)
        assert "\n" not in str(refused.value)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == ["config"]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (Path.mkdir, "is a folder, where the path of a kubeconfig is needed"),
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.symlink_to("/dev/null"), "is not a regular file"),
        (lambda path: path.symlink_to("missing/config"), "can't write the kubeconfig"),
    ],
)
def test_a_path_that_is_no_file_is_refused(path: Path, make: Any, problem: str) -> None:
    make(path)
    with pytest.raises((OSError, ValueError), match=problem):
        KubeconfigFile(path).check("fake")


class TestLock:
    def test_a_lock_that_stays_is_named(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kubeconfig_file, "_LOCK_TIMEOUT", 0.05)
        path.write_text(USERS_OWN)
        lock = Path(f"{path}.lock")
        lock.touch()
        with pytest.raises(OSError, match=f"another program has locked it; if none is running, remove {lock}"):
            KubeconfigFile(path).add(config())
        assert lock.exists()
        assert path.read_text() == USERS_OWN

    def test_many_at_once_lose_nothing(self, path: Path) -> None:
        path.write_text(USERS_OWN)
        files = {f"fake-{n}": KubeconfigFile(path) for n in range(8)}
        begin, rest = threading.Barrier(8), threading.Barrier(8)
        seen: list[list[str]] = []

        def live(name: str, file: KubeconfigFile) -> None:
            begin.wait(60)
            file.add(config(name, f"https://{name}"))
            rest.wait(60)
            seen.append([item["name"] for item in yaml.safe_load(path.read_text())["clusters"]])
            rest.wait(60)
            file.remove()

        threads = [threading.Thread(target=live, args=item) for item in files.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert [sorted(names) for names in seen] == [sorted([*files, "prod"])] * 8
        assert path.read_text() == USERS_OWN
        assert os.listdir(path.parent) == ["config"]


WORDS = st.sampled_from(["a", "b", "prod", "é", "x: y", "# no", "- z", "", "yes", "1"])
VALUES = st.recursive(
    WORDS | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "prod", "é"])}, optional={"cluster": VALUES, "context": VALUES, "user": VALUES}
    ),
    max_size=3,
    unique_by=lambda item: item["name"],
)
CONFIGS = st.fixed_dictionaries(
    {"kind": st.just("Config")},
    optional={"clusters": ITEMS, "contexts": ITEMS, "users": ITEMS, "current-context": WORDS, "x": VALUES},
)


@given(data=st.data(), document=CONFIGS)
@settings(max_examples=300)
def test_any_document_in_any_style(data: st.DataObject, document: Any) -> None:
    """Styles as PyYAML and json write them, with comments and blank lines strewn in."""
    style = data.draw(st.sampled_from(["block", "flow", "mixed", "indented", "json", "json in one line"]))
    if style.startswith("json"):
        text = json.dumps(document, indent=None if "one" in style else 2, ensure_ascii=data.draw(st.booleans()))
    else:
        text = yaml.safe_dump(
            document,
            default_flow_style={"block": False, "flow": True}.get(style, False if style == "indented" else None),
            width=data.draw(st.sampled_from([10, 80])),
            default_style=data.draw(st.sampled_from([None, '"', "'"])),
            sort_keys=data.draw(st.booleans()),
            allow_unicode=data.draw(st.booleans()),
        )
        lines = text.splitlines(keepends=True)
        if style == "block":
            for index in data.draw(st.lists(st.integers(0, len(lines)), max_size=3)):
                if yaml.safe_load("".join(with_comment := [*lines[:index], "# note\n", *lines[index:]])) == document:
                    lines = with_comment
        text = "".join(lines)
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = text.replace("\n", newline)
    if data.draw(st.booleans()):
        text = text.rstrip("\r\n")
    mine = Entries.of(config(data.draw(st.sampled_from(["fake", "prod"]))))
    merged = kubeconfig_text.added(text, mine)
    found = yaml.safe_load(merged)
    assert found["current-context"] == mine.name
    for key in ("clusters", "contexts", "users"):
        assert mine.name in [item["name"] for item in found[key]]
        assert [item for item in found[key] if item["name"] != mine.name] == [
            item for item in document.get(key) or () if item["name"] != mine.name
        ]
    assert found.get("x") == yaml.safe_load(text).get("x")
    left = kubeconfig_text.removed(merged, mine)
    if all(key in document for key in ("clusters", "contexts", "users", "current-context")):
        assert left == text


def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    """`--write-kubeconfig ~/.kube/config` on a machine that has never seen kubectl."""
    file = KubeconfigFile(tmp_path / ".kube" / "config")
    file.check("fake")
    assert not file.path.parent.exists()
    file.add(config())
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    file.remove()
    assert not file.path.exists()
