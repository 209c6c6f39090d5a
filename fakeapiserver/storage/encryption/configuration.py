"""An EncryptionConfiguration: read from a file, validated, and as the transformers that it describes.

>>> transformers = load(Path("encryption.yaml"))                                # doctest: +SKIP
>>> transformers.of(GroupResource("", "secrets")).write(b"{}", b"/registry/secrets/default/a")  # doctest: +SKIP

Upstream: k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fakeapiserver.apimachinery.errors import aggregated
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import type_meta
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind
from fakeapiserver.storage.encryption.providers import PROVIDERS
from fakeapiserver.storage.encryption.transformers import ANY, Identity, Prefixed, ResourceTransformers, Transformer
from fakeapiserver.storage.encryption.validation import decoded_secret, group_resource, validate

_VERSION: Final = "apiserver.config.k8s.io/v1"
_TYPES: Final = {
    "ResourceConfiguration": {"resources": "[]string", "providers": "[]ProviderConfiguration"},
    "ProviderConfiguration": {
        "aesgcm": "AESConfiguration",
        "aescbc": "AESConfiguration",
        "secretbox": "SecretboxConfiguration",
        "identity": "IdentityConfiguration",
        "kms": "KMSConfiguration",
    },
    "AESConfiguration": {"keys": "[]Key"},
    "SecretboxConfiguration": {"keys": "[]Key"},
    "IdentityConfiguration": {},
    "Key": {"name": "string", "secret": "string"},
    "KMSConfiguration": {
        "apiVersion": "string",
        "name": "string",
        "cachesize": "int32",
        "endpoint": "string",
        "timeout": "Duration",
    },
}
# Upstream knows the kind by a second name as well, which its documentation once had.
_KINDS: Final = {
    ("EncryptionConfiguration", _VERSION): "EncryptionConfiguration",
    ("EncryptionConfig", "v1"): "EncryptionConfig",
}
# The other kinds of the same version.
_OTHERS: Final = (
    "AdmissionConfiguration",
    "AuthenticationConfiguration",
    "AuthorizationConfiguration",
    "TracingConfiguration",
)
_OLD_KMS: Final = (
    "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  "
    "Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
)
_Overrides = dict[GroupResource, list[Object]]


def load(path: Path) -> ResourceTransformers:
    """The transformers that a file describes. Raises ValueError, in upstream's words, if the file can't be read or is invalid, and with
    one sentence for a KMS provider or a missing library."""
    return transformers(read(path), str(path))


def read(path: Path) -> bytes:
    """Raises ValueError if the file can't be read."""
    prefix = "error while parsing file: error while loading file: "
    try:
        return path.read_bytes()
    except OSError as error:
        why = f"open {path}: {(error.strerror or str(error)).lower()}"
        raise ValueError(
            f"{prefix}error reading encryption provider configuration file {go_quote(str(path))}: {why}"
        ) from None


def transformers(data: bytes, name: str) -> ResourceTransformers:
    """The transformers of a configuration; `name` is the file's in messages."""
    overrides = parsed(data, name)
    try:
        return ResourceTransformers({resource: _prefixed(providers) for resource, providers in overrides.items()})
    except ValueError as error:
        raise ValueError(f"error while building transformers: {error}") from None


def parsed(data: bytes, name: str) -> Mapping[GroupResource, list[Object]]:
    """The providers of each resource, in their order. Raises ValueError in upstream's words."""
    try:
        config = _decoded(data, name)
        if errors := validate(config):
            raise ValueError(aggregated(errors))
    except ValueError as error:
        raise ValueError(f"error while parsing file: {error}") from None
    overrides: _Overrides = {}
    for entry in config["resources"]:
        for text in entry["resources"]:
            resource = group_resource(text)
            _check_unmasked(resource, overrides)
            overrides.setdefault(resource, []).extend(entry["providers"])
    return overrides


def _decoded(data: bytes, name: str) -> Object:
    if not data:
        raise ValueError(f"error while loading file: encryption provider configuration file {go_quote(name)} is empty")
    try:
        _, version, kind, _ = type_meta.read(data)
        known = _KINDS.get((kind, version), "EncryptionConfiguration")
        if version == _VERSION and kind in _OTHERS:
            raise _UnexpectedKind(f"got unexpected config type: {version}, Kind={kind}")
        types = {known: {"resources": "[]ResourceConfiguration"}, **_TYPES}
        return ConfigKind(known, (_VERSION if known != "EncryptionConfig" else "v1",), types).decode(data)
    except _UnexpectedKind:
        raise
    except ValueError as error:
        raise ValueError(f"error decoding encryption provider configuration file {go_quote(name)}: {error}") from None


class _UnexpectedKind(ValueError):
    """The file holds another kind of configuration."""


def _check_unmasked(resource: GroupResource, overrides: _Overrides) -> None:
    """Raises ValueError if an earlier wildcard covers the resource."""
    for wildcard in (GroupResource(resource.group, ANY), GroupResource(ANY, ANY)):
        if wildcard in overrides:
            masked = f"resource {go_quote(_shown(resource))} is masked by earlier rule {go_quote(_shown(wildcard))}"
            raise ValueError(f"error while building transformers: {masked}")


def _shown(resource: GroupResource) -> str:
    return "*." if resource == GroupResource("", ANY) else str(resource)


def _prefixed(providers: list[Object]) -> Transformer:
    return Prefixed("no matching prefix found", [_provider(provider) for provider in providers])


def _provider(provider: Object) -> tuple[bytes, Transformer]:
    """The prefix of the provider's values, and their transformer."""
    if (kms := provider.get("kms")) is not None:
        if kms.get("apiVersion", "v1") == "v1":
            raise ValueError(_OLD_KMS)
        raise ValueError(
            f"the provider kms {go_quote(kms.get('name', ''))} needs a plugin that this server can't call: "
            "use the providers secretbox, aesgcm, aescbc and identity"
        )
    name = next((name for name in PROVIDERS if name in provider), None)
    if name is None:
        return b"", Identity()
    make, algorithm = PROVIDERS[name]
    keys = [(f"{key['name']}:".encode(), make(decoded_secret(key["secret"]))) for key in provider[name]["keys"]]
    return f"k8s:enc:{name}:v1:".encode(), Prefixed(
        f"no matching key was found for the provided {algorithm} transformer", keys
    )
