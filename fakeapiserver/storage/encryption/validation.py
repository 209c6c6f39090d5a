"""The validation of an EncryptionConfiguration, in upstream's words. What a KMS provider says about itself isn't checked.

Upstream: k8s.io/apiserver/pkg/apis/apiserver/validation/validation_encryption.go.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.field import ErrorList, Path, invalid, required
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.storage.encryption.transformers import ANY

_AES: Final = (16, 24, 32)
KEY_SIZES: Final[Mapping[str, Sequence[int]]] = {"aesgcm": _AES, "aescbc": _AES, "secretbox": (32,)}
# Provider -> its name in Go, in the order of Go's struct.
_FIELDS: Final = {
    "aesgcm": "AESGCM",
    "aescbc": "AESCBC",
    "secretbox": "Secretbox",
    "identity": "Identity",
    "kms": "KMS",
}
_NO_OBJECTS: Final = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")
_EVENTS: Final = (
    "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
)
_OVERLAP: Final = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked"


def validate(config: Object) -> ErrorList:
    root = Path("resources")
    entries = config.get("resources") or ()
    if not entries:
        return [required(root, f"at least one {root} is required")]
    errors: ErrorList = []
    for i, entry in enumerate(entries):
        path = root.index(i).child("resources")
        names: Sequence[str] = entry.get("resources") or ()
        if not names:
            errors.append(required(path, f"at least one {path} is required"))
        errors += _overlaps(names, path)
        errors += [error for j, name in enumerate(names) for error in _name_errors(name, path.index(j))]
        path = root.index(i).child("providers")
        providers = entry.get("providers") or ()
        if not providers:
            errors.append(required(path, f"at least one {path} is required"))
        for j, provider in enumerate(providers):
            errors += _provider_errors(provider, path.index(j))
    return errors


def group_resource(text: str) -> GroupResource:
    """`deployments.apps` -> the resource and its group."""
    resource, _, group = text.partition(".")
    return GroupResource(group, resource)


def decoded_secret(text: str) -> bytes:
    """A key in base64, as Go reads it: line ends don't count. Raises ValueError."""
    return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)


def _overlaps(names: Sequence[str], path: Path) -> ErrorList:
    resources = [group_resource(name) for name in names]
    errors: ErrorList = []
    has_duplicate = len(set(resources)) < len(resources)
    if has_duplicate:
        errors.append(invalid(path, names, "the same resource cannot be specified multiple times"))
    if _has_overlap(resources):
        errors.append(invalid(path, names, _OVERLAP))
    return errors


def _has_overlap(resources: Sequence[GroupResource]) -> bool:
    """Reports whether a wildcard covers another name. Upstream takes the first pair of equal names for a duplicate only."""
    has_duplicate = False
    for i, first in enumerate(resources):
        for j, second in enumerate(resources):
            if i == j:
                continue
            if first == second and not has_duplicate:
                has_duplicate = True
            elif first == GroupResource(ANY, ANY) or (
                first.group == second.group and ANY in (first.resource, second.resource)
            ):
                return True
    return False


def _name_errors(name: str, path: Path) -> ErrorList:
    resource = group_resource(name)
    if name.lower() != name:
        detail = "resource name should not contain capital letters"
    elif name == ANY:
        detail = "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    elif name in _NO_OBJECTS:
        detail = "resources which do not have REST API/s cannot be encrypted"
    elif resource.group == "events.k8s.io":
        detail = _EVENTS
    elif resource.group == "extensions":
        detail = "'extensions' group has been removed and cannot be used for encryption"
    elif resource.group == ANY and resource.resource != ANY:
        detail = "encrypting the same resource across groups is not supported"
    else:
        return []
    return [invalid(path, name, detail)]


def _provider_errors(provider: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    if not provider:
        expected = "KMS, AESGCM, AESCBC, Secretbox, Identity"
        detail = f"provider does not contain any of the expected providers: {expected}"
        errors.append(invalid(path, _in_go(provider), detail))
    elif len(provider) > 1:
        detail = "more than one provider specified in a single element, should split into different list elements"
        errors.append(invalid(path, _in_go(provider), detail))
    if "kms" in provider:
        return errors
    name = next((name for name in KEY_SIZES if name in provider), None)
    return errors if name is None else errors + _keys_errors(provider[name], path.child(name, "keys"), KEY_SIZES[name])


def _keys_errors(provider: Object, path: Path, sizes: Sequence[int]) -> ErrorList:
    keys = provider.get("keys") or ()
    if not keys:
        return [required(path, "at least one keys is required")]
    return [error for i, key in enumerate(keys) for error in _key_errors(key, path.index(i), sizes)]


def _key_errors(key: Object, path: Path, sizes: Sequence[int]) -> ErrorList:
    errors: ErrorList = []
    if not key.get("name"):
        errors.append(required(path.child("name"), "name is a mandatory field for a key"))
    if not key.get("secret"):
        errors.append(required(path.child("secret"), "secret is a mandatory field for a key"))
        return errors
    try:
        size = len(decoded_secret(key["secret"]))
    except (ValueError, binascii.Error):
        errors.append(invalid(path.child("secret"), "REDACTED", "secrets must be base64 encoded"))
        return errors
    if size not in sizes:
        detail = f"secret is not of the expected length, got {size}, expected one of [{' '.join(map(str, sizes))}]"
        errors.append(invalid(path.child("secret"), "REDACTED", detail))
    return errors


def _in_go(provider: Object) -> Object:
    """The provider as upstream's messages show it: by Go's names, which have secrets, too."""
    return {go_name: _part_in_go(name, provider.get(name)) for name, go_name in _FIELDS.items()}


def _part_in_go(name: str, part: Object | None) -> Any:
    if part is None or name == "identity":
        return part
    if name == "kms":
        version = part.get("apiVersion") or "v1"
        return {
            "APIVersion": version,
            "Name": part.get("name", ""),
            "CacheSize": part.get("cachesize", 1000 if version == "v1" else None),
            "Endpoint": part.get("endpoint", ""),
            "Timeout": part.get("timeout", "3s"),
        }
    keys = part.get("keys")
    shown = [{"Name": key.get("name", ""), "Secret": key.get("secret", "")} for key in keys or ()]
    return {"Keys": None if keys is None else shown}
