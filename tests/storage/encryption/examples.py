"""Configurations, and values that a kube-apiserver 1.36.3 has stored under the first one."""

import base64
import json
from pathlib import Path
from typing import Final

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.serializer import json as documents
from fakeapiserver.storage.encryption import configuration
from fakeapiserver.storage.encryption.transformers import ResourceTransformers

FOLDER: Final = Path(__file__).parent
LONG: Final = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
OTHER: Final = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
SHORT: Final = "MDEyMzQ1Njc4OWFiY2RlZg=="
OTHER_SHORT: Final = "ZmVkY2JhOTg3NjU0MzIxMA=="
# Key in etcd -> its value.
STORED: Final[dict[str, bytes]] = {
    key: base64.b64decode(text) for key, text in json.loads((FOLDER / "stored_values.json").read_text()).items()
}
RESOURCES: Final = {
    "/registry/secrets/default/s1": GroupResource("", "secrets"),
    "/registry/configmaps/default/c1": GroupResource("", "configmaps"),
    "/registry/serviceaccounts/default/sa1": GroupResource("", "serviceaccounts"),
    "/registry/example.com/widgets/default/w": GroupResource("example.com", "widgets"),
    "/registry/deployments/default/d1": GroupResource("apps", "deployments"),
}


def provider(kind: str, **keys: str) -> dict[str, object]:
    """`provider("aescbc", name=secret)`; `identity` has no keys."""
    return {kind: {"keys": [{"name": name, "secret": secret} for name, secret in keys.items()]} if keys else {}}


IDENTITY: Final = provider("identity")
GROUPED: Final = {"aescbc": {"keys": [{"name": "a:b", "secret": SHORT}]}}
# Resources -> providers, as they were when the values were stored.
RULES: Final[dict[str, list[dict[str, object]]]] = {
    "secrets": [provider("secretbox", box1=LONG), IDENTITY],
    "configmaps": [provider("aescbc", cbc1=LONG), IDENTITY],
    "serviceaccounts": [provider("aesgcm", gcm1=SHORT), IDENTITY],
    "events": [IDENTITY],
    "*.example.com": [provider("aesgcm", gcm1=SHORT)],
    "*.apps": [GROUPED],
    "*.*": [provider("secretbox", box2=OTHER)],
}


def written(rules: dict[str, list[dict[str, object]]]) -> bytes:
    """The file of these rules."""
    entries = [{"resources": [name], "providers": providers} for name, providers in rules.items()]
    header = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration"}
    return documents.encode({**header, "resources": entries})


def transformers(rules: dict[str, list[dict[str, object]]]) -> ResourceTransformers:
    return configuration.transformers(written(rules), "FILE")
