"""Files with an EncryptionConfiguration: kube-apiserver 1.36.3 has refused each of the recorded ones with that message."""

import builtins
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.storage.encryption import configuration
from tests.storage.encryption.examples import FOLDER, IDENTITY, LONG, OTHER, SHORT, provider, transformers, written

REFUSED: Final[dict[str, dict[str, str]]] = json.loads((FOLDER / "refused_configurations.json").read_text())
PLACE: Final = b"/registry/anything"


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_a_real_server_refuses_it(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(REFUSED[name]['message'])}$"):
        configuration.transformers(REFUSED[name]["file"].encode(), "FILE")


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "none.yaml"
    with pytest.raises(ValueError, match=f'configuration file "{file}": open {file}: no such file or directory$'):
        configuration.load(file)


def test_a_provider_that_needs_a_plugin() -> None:
    kms = {"kms": {"name": "vault", "apiVersion": "v2", "endpoint": "unix:///run/vault.sock"}}
    with pytest.raises(ValueError, match='the provider kms "vault" needs a plugin that this server can\'t call'):
        transformers({"secrets": [kms, IDENTITY]})


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def import_(name: str, *rest: Any) -> Any:
        if name.startswith("nacl"):
            raise ImportError(f"No module named {name!r}")
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", import_)
    with pytest.raises(
        ValueError, match=r"secretbox needs the library PyNaCl .*: pip install 'fakeapiserver\[etcd\]'$"
    ):
        transformers({"secrets": [provider("secretbox", a=LONG)]})


@pytest.mark.parametrize(
    ("resource", "prefix"),
    [
        (GroupResource("", "secrets"), b"k8s:enc:aescbc:v1:own:"),
        (GroupResource("", "pods"), b"k8s:enc:aescbc:v1:core:"),
        (GroupResource("apps", "deployments"), b"k8s:enc:aescbc:v1:apps:"),
        (GroupResource("example.com", "secrets"), b"k8s:enc:aescbc:v1:all:"),
        (GroupResource("example.com", "widgets"), b"value"),
    ],
)
def test_the_most_specific_rule_encrypts(resource: GroupResource, prefix: bytes) -> None:
    rules = {
        "widgets.example.com": [IDENTITY],
        "secrets": [provider("aescbc", own=LONG)],
        "*.": [provider("aescbc", core=LONG)],
        "*.apps": [provider("aescbc", apps=LONG)],
        "*.*": [provider("aescbc", all=LONG)],
    }
    transformer = transformers(rules).of(resource)
    data = transformer.write(b"value", PLACE)
    assert data.startswith(prefix)
    assert transformer.read(data, PLACE).value == b"value"


def test_without_a_rule_nothing_is_encrypted() -> None:
    transformer = transformers({"secrets": [provider("aesgcm", a=SHORT)]}).of(GroupResource("", "pods"))
    assert transformer.write(b"value", PLACE) == b"value"


def test_a_resource_of_two_entries_has_the_providers_of_both() -> None:
    first, second = provider("aescbc", a=LONG), provider("aescbc", b=OTHER)
    entries = [{"resources": ["secrets"], "providers": [each]} for each in (first, second)]
    file = json.loads(written({"secrets": []}))
    both = configuration.transformers(json.dumps({**file, "resources": entries}).encode(), "FILE")
    data = transformers({"secrets": [second]}).of(GroupResource("", "secrets")).write(b"value", PLACE)
    plain = both.of(GroupResource("", "secrets")).read(data, PLACE)
    assert (plain.value, plain.is_stale) == (b"value", True)
