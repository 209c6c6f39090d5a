"""Checks of a command line before anything is started: unreadable files and unknown feature gates."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.flags import Parsed
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.projects import manifests

_FILES: Final = (
    "load",
    "admission-control-config-file",
    "audit-policy-file",
    "audit-webhook-config-file",
    "authentication-config",
    "authentication-token-webhook-config-file",
    "authorization-config",
    "authorization-policy-file",
    "authorization-webhook-config-file",
    "client-ca-file",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "oidc-ca-file",
    "proxy-client-cert-file",
    "proxy-client-key-file",
    "requestheader-client-ca-file",
    "service-account-key-file",
    "service-account-signing-key-file",
    "tls-cert-file",
    "tls-private-key-file",
    "token-auth-file",
)
# Flags with files and folders of manifests, and the kinds that these must have.
_MANIFESTS: Final[Mapping[str, Sequence[str]]] = {
    "crds": ("CustomResourceDefinition",),
    "stages": ("Stage",),
    "webhooks": ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
}


def check(parsed: Parsed) -> None:
    """Raises UsageError for the first file that doesn't exist or can't be read, and for unknown feature gates."""
    _check_gates(parsed.config)
    if parsed.write_kubeconfig is not None and parsed.write_kubeconfig.is_dir():
        raise UsageError(f"--write-kubeconfig: {str(parsed.write_kubeconfig)!r} is a folder: name a file")
    for flag in _FILES:
        if path := parsed.given.get(flag, ""):
            check_file(flag, Path(path))
    for file in parsed.config.faults:
        check_file("faults", file)
    for flag, kinds in _MANIFESTS.items():
        if flag in parsed.given:
            setattr(parsed.config, flag, _objects_of(flag, getattr(parsed.config, flag), kinds))


def _objects_of(flag: str, paths: Sequence[Path], kinds: Sequence[str]) -> tuple[Object, ...]:
    """Returns the objects of these kinds in files and folders, of which each must have one."""
    objects: dict[str, Object] = {}
    for path in paths:
        if not path.exists():
            raise UsageError(f"--{flag}: there is no file or folder {str(path)!r}")
        try:
            found = manifests.read(path, *kinds)
        except (OSError, ValueError) as error:
            raise UsageError(f"--{flag}: {error}") from None
        if not found:
            raise UsageError(f"--{flag}: there is no {' or '.join(kinds)} in {str(path)!r}")
        objects |= {manifests.title(obj): obj for obj in found}
    return tuple(objects.values())


def _check_gates(config: Config) -> None:
    if not config.feature_gates:
        return
    try:
        _ = config.features
    except ValueError as error:
        raise UsageError(f"--feature-gates: {error}") from None


def check_file(flag: str, path: Path) -> None:
    if path.is_dir():
        raise UsageError(f"--{flag}: {str(path)!r} is a folder, not a file")
    if not path.exists():
        raise UsageError(f"--{flag}: there is no file {str(path)!r}")
    if not os.access(path, os.R_OK):
        raise UsageError(f"--{flag}: {str(path)!r} can't be read: give yourself the permission to read it")
