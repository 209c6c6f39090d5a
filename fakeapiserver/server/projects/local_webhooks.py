"""Webhooks whose server runs on this machine: their configurations as a project has them, led to a local port with a certificate.

Upstream: sigs.k8s.io/controller-runtime/pkg/envtest/{webhook,crd}.go.
"""

import socket
import ssl
import tempfile
import time
from base64 import b64encode
from copy import deepcopy
from pathlib import Path
from typing import Final

from fakeapiserver.admission.interfaces import Versions
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.server.projects import manifests
from fakeapiserver.server.projects.manifests import Sources
from fakeapiserver.server.upkeep.loopback_writer import LoopbackWriter
from fakeapiserver.transport import certificates
from fakeapiserver.transport.files import write_file
from fakeapiserver.transport.free_ports import free_port
from fakeapiserver.transport.key_pair import KeyPair

_HOST: Final = "127.0.0.1"
_NAMES: Final = (_HOST, "localhost", "::1")
_PAUSE: Final = 0.02  # seconds
_GROUP: Final = "admissionregistration.k8s.io"
_CONFIGURATIONS: Final = {
    f"{sort}WebhookConfiguration": f"{sort.lower()}webhookconfigurations.{_GROUP}"
    for sort in ("Mutating", "Validating")
}
_DEFINITION: Final = "CustomResourceDefinition"
_VERSIONS: Final = {**dict.fromkeys(_CONFIGURATIONS, f"{_GROUP}/v1"), _DEFINITION: "apiextensions.k8s.io/v1"}
_RESOURCES: Final = {**_CONFIGURATIONS, _DEFINITION: "customresourcedefinitions.apiextensions.k8s.io"}


class LocalWebhooks:
    """`cluster.webhooks`: where a test's webhook server is asked, and what it shows.

    `is_called`: whether a configuration or a definition names a service, which is led here. `cert_dir` holds `tls.crt` and `tls.key`, as
    controller-runtime's server expects them, and `ca.crt`, their authority. The server may be started at any time; until then, calls to
    it fail as each webhook's failure policy says."""

    def __init__(self, folder: Path | None = None, port: int = 0, origin: "LocalWebhooks | None" = None) -> None:
        """`folder` None: one that goes with `close`; `port` 0: a free one. `origin`: those of the cluster of which this one is a fork,
        whose certificates the stored addresses trust. OSError."""
        self._temporary = tempfile.TemporaryDirectory(prefix="fakeapiserver-webhooks-") if folder is None else None
        self.cert_dir = str(folder) if self._temporary is None else self._temporary.name
        self.host = _HOST
        self.port = port or free_port()
        self.stored_port: int = (
            origin.stored_port if origin is not None else self.port
        )  # in the addresses that are stored
        self.is_called: bool = origin is not None and origin.is_called
        if origin is not None:
            self.ca: bytes = origin.ca
            self._serving: KeyPair = origin._serving
        else:
            authority = certificates.create_authority("fakeapiserver-webhooks-ca")
            self._serving = certificates.issue_server(authority, _NAMES, "fakeapiserver-webhooks")
            self.ca = authority.certificate
        place = Path(self.cert_dir)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(place / "tls.key", self._serving.key, 0o600)
        write_file(place / "tls.crt", self._serving.certificate)
        write_file(place / "ca.crt", self.ca)

    @property
    def url(self) -> str:
        """`https://127.0.0.1:PORT`."""
        return f"https://{self.host}:{self.port}"

    def close(self) -> None:
        """Removes the certificate's folder, unless the user chose it."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def wait(self, timeout: float = 10.0) -> None:
        """Waits until the webhook server answers with its certificate. TimeoutError after so many seconds, with what was wrong last."""
        context = ssl.create_default_context(cadata=self.ca.decode())
        end = time.monotonic() + timeout
        while True:
            try:
                with socket.create_connection((self.host, self.port), timeout=timeout) as plain:
                    context.wrap_socket(plain, server_hostname=self.host).close()
                return
            except OSError as error:
                if time.monotonic() >= end:
                    where = f"at {self.url}, with the certificate in {self.cert_dir}"
                    raise TimeoutError(f"no webhook server {where}, within {timeout:g} seconds: {error}") from error
            time.sleep(_PAUSE)

    def localized(self, obj: Object) -> Object:
        """The same configuration or definition, but the services it names are on this machine."""
        if obj["kind"] in _CONFIGURATIONS:
            return {**obj, "webhooks": [self._led_here(hook) for hook in obj.get("webhooks") or ()]}
        spec = obj.get("spec") or {}
        conversion = spec.get("conversion") or {}
        if conversion.get("strategy") != "Webhook" or not conversion.get("webhook"):
            return obj
        return {**obj, "spec": {**spec, "conversion": {**conversion, "webhook": self._led_here(conversion["webhook"])}}}

    def _led_here(self, hook: Object) -> Object:
        client = hook.get("clientConfig") or {}
        bundle = b64encode(self.ca).decode()
        if (service := client.get("service")) is not None:
            path = (service.get("path") or "").lstrip("/")
            self.is_called = True
            return {**hook, "clientConfig": {"url": f"{self.url}/{path}", "caBundle": bundle}}
        # A webhook with an address but no authority gets this one.
        return {**hook, "clientConfig": {"caBundle": bundle, **client}}


async def _store(writer: LoopbackWriter, resource: str, obj: Object) -> None:
    """Creates the object, or replaces the one that is there. StatusError."""
    try:
        await writer.create(resource, deepcopy(obj))
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise
        await writer.replace(resource, obj)


async def install(
    webhooks: LocalWebhooks, configurations: Sources, definitions: Sources, versions: Versions, writer: LoopbackWriter
) -> None:
    """Stores the configurations and definitions from files, folders and objects, led to `webhooks`. They replace those that are there.

    Raises OSError, and ValueError with the server's refusal.
    """
    objects = [*manifests.required(definitions, _DEFINITION), *manifests.required(configurations, *_CONFIGURATIONS)]
    for obj in objects:
        served = _VERSIONS[obj["kind"]]
        if obj.get("apiVersion") != served:
            raise ValueError(f"{manifests.title(obj)}: there is only {served}, not {obj.get('apiVersion')}")
        try:
            versions.settle(obj, GroupVersionKind(*GroupVersion.parse(obj["apiVersion"]), obj["kind"]))
            await _store(writer, _RESOURCES[obj["kind"]], webhooks.localized(obj))
        except StatusError as error:
            raise ValueError(f"{manifests.title(obj)}: {error.message}") from None
        except ValueError as error:
            raise ValueError(f"{manifests.title(obj)}: {error}") from None
