"""Credentials that another program gives: an exec plugin of a kubeconfig.

The program reads an ExecCredential with its spec from KUBERNETES_EXEC_INFO and prints one with its status.
Upstream: k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go, KEP-541.
"""

import asyncio
import json
import os
import sys
from base64 import b64encode
from datetime import datetime
from typing import Any, Final

from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.credentials import Credential
from fakeapiserver.clock import Clock
from fakeapiserver.transport.certificates import KeyPair

_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


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
        command, interactive = self._command, self._is_interactive()
        environment = {**os.environ, **self._exec.env, "KUBERNETES_EXEC_INFO": json.dumps(self._info(interactive))}
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *self._exec.args,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
            )
        except FileNotFoundError:
            hint = f"\n\n{self._exec.install_hint}" if self._exec.install_hint else ""
            raise ValueError(f"getting credentials: exec: executable {command} not found{hint}") from None
        except OSError as error:
            raise ValueError(f"getting credentials: exec: {command}: {error.strerror}") from None
        output, _ = await process.communicate()
        if process.returncode:
            raise ValueError(
                f"getting credentials: exec: executable {command} failed with exit code {process.returncode}"
            )
        return self._read(output)

    def _is_interactive(self) -> bool:
        """Whether it may ask whoever sits at this process's terminal. ValueError when it must, and there is none."""
        mode = self._exec.interactive_mode
        has_terminal = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not has_terminal:
            raise ValueError(
                "getting credentials: exec plugin cannot support interactive mode: standard input is not a terminal"
            )
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
        try:
            found = json.loads(output)
        except ValueError as error:
            raise ValueError(f"getting credentials: decoding stdout: {error}") from None
        if not isinstance(found, dict) or found.get("kind") != "ExecCredential":
            raise ValueError("getting credentials: decoding stdout: it is no ExecCredential")
        if found.get("apiVersion") != self._exec.api_version:
            raise ValueError(
                f"getting credentials: exec plugin is configured to use API version {self._exec.api_version}, "
                f"plugin returned version {found.get('apiVersion')}"
            )
        status = found.get("status")
        if not status:
            raise ValueError("getting credentials: exec plugin didn't return a status field")
        token = status.get("token") or ""
        certificate, key = status.get("clientCertificateData") or "", status.get("clientKeyData") or ""
        if bool(certificate) != bool(key):
            raise ValueError("getting credentials: exec plugin returned only certificate or key, not both")
        if not token and not certificate:
            raise ValueError("getting credentials: exec plugin didn't return a token or cert/key pair")
        self._expiry = _seconds(status.get("expirationTimestamp"))
        pair = KeyPair(certificate.encode(), key.encode()) if certificate else None
        return Credential(f"Bearer {token}" if token else "", pair)


def _seconds(timestamp: str | None) -> float:
    return datetime.fromisoformat(timestamp).timestamp() if timestamp else float("inf")
