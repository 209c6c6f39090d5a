"""The file of --encryption-provider-config: which resources are encrypted in etcd, and with which keys.

Upstream: k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go, pkg/apis/apiserver/v1/types_encryption.go.
"""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.serializer import yaml
from fakeapiserver.storage.encryption.providers import (
    AESCBC,
    AESGCM,
    IDENTITY,
    PLAIN,
    Cipher,
    Encryption,
    Key,
    Secretbox,
    key_of,
)

_API_VERSION, _KIND = "apiserver.config.k8s.io/v1", "EncryptionConfiguration"
_CIPHERS: Final[Mapping[str, tuple[type[AESCBC | AESGCM | Secretbox], Sequence[int]]]] = {
    "aescbc": (AESCBC, (16, 24, 32)),
    "aesgcm": (AESGCM, (16, 24, 32)),
    "secretbox": (Secretbox, (32,)),
}
_SERVED: Final = ("identity", *_CIPHERS)


class _NamedKey(Struct, forbid_unknown_fields=True):
    name: str
    secret: str


class _Keys(Struct, forbid_unknown_fields=True):
    keys: list[_NamedKey]


class _Resources(Struct, forbid_unknown_fields=True):
    resources: list[str]
    providers: list[dict[str, Any]]


class _Configuration(Struct, rename="camel", forbid_unknown_fields=True):
    api_version: str
    kind: str
    resources: list[_Resources]


class EncryptionConfiguration:
    """The encryption of each resource. The first entry that names a resource counts."""

    def __init__(self, entries: Sequence[tuple[str, Encryption]] = ()) -> None:
        self._entries = entries

    def of(self, resource: GroupResource) -> Encryption:
        """Returns the encryption of a resource's values; those of resources that aren't named are plain."""
        names = (str(resource), f"*.{resource.group}", "*.*")
        return next((encryption for name, encryption in self._entries if name in names), PLAIN)


def read(path: Path) -> EncryptionConfiguration:
    """Raises OSError, and ValueError with one sentence if the file is invalid."""
    try:
        document = yaml.decode(path.read_bytes())
        configuration = msgspec.convert(document, _Configuration)
    except ValueError as error:
        raise ValueError(f"--encryption-provider-config: {path} is invalid: {error}") from None
    if (configuration.api_version, configuration.kind) != (_API_VERSION, _KIND):
        raise ValueError(f"--encryption-provider-config: {path} is not an {_KIND} of {_API_VERSION}")
    try:
        return EncryptionConfiguration(
            [(name, _encryption(entry)) for entry in configuration.resources for name in entry.resources]
        )
    except ValueError as error:
        raise ValueError(f"--encryption-provider-config: {path}: {error}") from None


def _encryption(entry: _Resources) -> Encryption:
    keys = [key for provider in entry.providers for key in _keys(provider)]
    if not keys:
        raise ValueError(f"{', '.join(entry.resources)} has no provider")
    return Encryption(keys)


def _keys(provider: Mapping[str, Any]) -> list[Key]:
    if len(provider) != 1:
        raise ValueError(f"a provider has one of the names {', '.join(_SERVED)}, not {', '.join(provider) or 'none'}")
    ((name, options),) = provider.items()
    if name == "identity":
        return [IDENTITY]
    if name not in _CIPHERS:
        raise ValueError(f"the provider {name} isn't there: choose one of {', '.join(_SERVED)}")
    try:
        named = msgspec.convert(options, _Keys).keys
    except msgspec.ValidationError as error:
        raise ValueError(f"the provider {name} is invalid: {error}") from None
    if not named:
        raise ValueError(f"the provider {name} has no keys")
    return [key_of(name, key.name, _cipher(name, key)) for key in named]


def _cipher(provider: str, key: _NamedKey) -> Cipher:
    kind, sizes = _CIPHERS[provider]
    if not key.name or ":" in key.name:
        raise ValueError(f"a key of the provider {provider} needs a name without colons, not {key.name!r}")
    try:
        secret = b64decode(key.secret, validate=True)
    except ValueError:
        raise ValueError(f"the secret of the key {key.name} of {provider} is not base64") from None
    if len(secret) not in sizes:
        wanted = " or ".join(map(str, sizes))
        raise ValueError(f"the secret of the key {key.name} of {provider} has {len(secret)} bytes instead of {wanted}")
    return kind(secret)
