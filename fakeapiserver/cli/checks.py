"""Checks of a command line before anything is started: unreadable files and unknown feature gates."""

import os
from pathlib import Path
from typing import Final

from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.flags import Parsed
from fakeapiserver.server.options.config import Config

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
_FILES_OR_FOLDERS: Final = ("crds", "stages", "webhooks")


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
    for flag in _FILES_OR_FOLDERS:
        for path in getattr(parsed.config, flag) if flag in parsed.given else ():
            if not isinstance(path, Path) or not path.exists():
                raise UsageError(f"--{flag}: there is no file or folder {str(path)!r}")


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
