"""Credentials that another program gives: an exec plugin of a kubeconfig.

The program reads an ExecCredential with its spec from KUBERNETES_EXEC_INFO and prints one with its status.
Upstream: k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go, KEP-541.
"""

import asyncio
import json
import os
import sys
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.serializer import type_meta
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.credentials import Credential
from fakeapiserver.clock import Clock
from fakeapiserver.transport.key_pair import KeyPair
from fakeapiserver.transport.rest_config import check_key_pair

_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_KIND: Final = ConfigKind(
    "ExecCredential",
    _VERSIONS,
    {
        "ExecCredential": {"spec": "Raw", "status": "ExecCredentialStatus"},
        "ExecCredentialStatus": dict.fromkeys(
            ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp"), "string"
        ),
    },
)


class ExecPlugin:
    """Runs the program when its credential is wanted: first, when it has expired, and after a 401."""

    def __init__(self, config: RESTConfig, clock: Clock) -> None:
        assert config.exec_provider is not None
        self._config = config
        self._exec = config.exec_provider
        self._command = os.path.normpath(self._exec.command)
        self._clock = clock
        self._lock = asyncio.Lock()
        self._known: Credential | None = None
        self._expiry = float("inf")
        if self._exec.api_version not in _VERSIONS:
            raise ValueError(f"exec plugin: invalid apiVersion {go_quote(self._exec.api_version)}")

    async def current(self) -> Credential:
        """ValueError with one sentence when the program gives none."""
        async with self._lock:
            if self._known is None or self._clock.now() >= self._expiry:
                self._known = await self._run()
            return self._known

    def rejected(self, credential: Credential) -> None:
        """The program is asked again, unless it was in the meantime."""
        if self._known is credential:
            self._known = None

    async def _run(self) -> Credential:
        try:
            return self._read(await self._output())
        except ValueError as error:
            raise ValueError(f"getting credentials: {error}") from None

    async def _output(self) -> bytes:
        interactive = self._is_interactive()
        environment = {**os.environ, **self._exec.env, "KUBERNETES_EXEC_INFO": json.dumps(self._info(interactive))}
        try:
            process = await asyncio.create_subprocess_exec(
                self._command,
                *self._exec.args,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
            )
        except FileNotFoundError:
            hint = f"\n\n{self._exec.install_hint}" if self._exec.install_hint else ""
            raise ValueError(f"exec: executable {self._command} not found{hint}") from None
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise ValueError(f"exec: fork/exec {self._command}: {why}") from None
        output, _ = await process.communicate()
        if code := process.returncode:
            raise ValueError(f"exec: executable {self._command} failed with exit code {max(code, -1)}")
        return output

    def _is_interactive(self) -> bool:
        """Reports whether the plugin may use this process's terminal. Raises ValueError if it must and there is no terminal."""
        mode = self._exec.interactive_mode
        has_terminal = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not has_terminal:
            raise ValueError("exec plugin cannot support interactive mode: standard input is not a terminal")
        return has_terminal

    def _info(self, interactive: bool) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._exec.provide_cluster_info:
            config = self._config
            cluster = {
                "server": config.host,
                "tls-server-name": config.server_name,
                "insecure-skip-tls-verify": config.insecure,
                "certificate-authority-data": b64encode(config.authorities()).decode(),
                "proxy-url": config.proxy_url,
                "disable-compression": config.disable_compression,
                "config": self._exec.cluster_extension,
            }
            spec["cluster"] = {key: value for key, value in cluster.items() if value}
        return {"apiVersion": self._exec.api_version, "kind": "ExecCredential", "spec": spec}

    def _read(self, output: bytes) -> Credential:
        status = _status(output, self._exec.api_version)
        token = status.get("token") or ""
        certificate, key = status.get("clientCertificateData") or "", status.get("clientKeyData") or ""
        if not token and not certificate and not key:
            raise ValueError("exec plugin didn't return a token or cert/key pair")
        if bool(certificate) != bool(key):
            raise ValueError("exec plugin returned only certificate or key, not both")
        self._expiry = _expiry(status.get("expirationTimestamp") or "")
        return Credential(f"Bearer {token}" if token else "", _pair(certificate, key) if certificate else None)


def _status(output: bytes, version: str) -> Mapping[str, str]:
    """Reads an ExecCredential, JSON or YAML. Raises ValueError."""
    try:
        output_document = type_meta.read(output)
        kind, named = output_document.kind or "ExecCredential", output_document.version or version
        document = _KIND.read({**output_document.content, "kind": kind, "apiVersion": named}, is_strict=False)
    except ValueError as error:
        raise ValueError(f"decoding stdout: {error}") from None
    if named != version:
        raise ValueError(f"exec plugin is configured to use API version {version}, plugin returned version {named}")
    if "status" not in document:
        raise ValueError("exec plugin didn't return a status field")
    status: Mapping[str, str] = document["status"]
    return status


def _expiry(timestamp: str) -> float:
    """Seconds since the Unix epoch. ValueError."""
    if not timestamp:
        return float("inf")
    expiry = seconds_of(timestamp)
    if expiry is None:
        raise ValueError(f"decoding stdout: expirationTimestamp is no time: {go_quote(timestamp)}")
    return expiry


def _pair(certificate: str, key: str) -> KeyPair:
    pair = KeyPair(certificate.encode(), key.encode())
    try:
        check_key_pair(pair)
    except ValueError as error:
        raise ValueError(f"failed parsing client key/certificate: {error}") from None
    return pair
