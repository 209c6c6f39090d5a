"""The server and the identity in a kubeconfig file, by which kube-apiserver is configured for webhooks that
authenticate and authorize.

Upstream: k8s.io/apiserver/pkg/util/webhook/webhook.go (LoadKubeconfig, WithExponentialBackoff).
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from msgspec.structs import replace

from fakeapiserver.apimachinery.serializer import json, type_meta
from fakeapiserver.apimachinery.serializer.component_config import not_registered
from fakeapiserver.apis.scheme import known_kinds
from fakeapiserver.transport.kubeconfigs import clientcmd
from fakeapiserver.transport.rest_config import RESTConfig
from fakeapiserver.transport.webhook import Endpoint, Identity, WebhookClient, WebhookError

_STEPS: Final = 5
_FIRST_PAUSE: Final = 0.5  # seconds
_FACTOR: Final = 1.5
_JITTER: Final = 0.2
_USER_AGENT: Final = "Go-http-client/1.1"


def load_kubeconfig(path: Path) -> Endpoint:
    """The current context's server. ValueError with clientcmd's sentence, OSError for files that can't be read. What an exec
    plugin gives isn't in it, and what stands in a token file only as it is now (`has_changing_credentials`)."""
    return endpoint_of(clientcmd.load_file(path))


def endpoint_of(config: RESTConfig) -> Endpoint:
    """Returns the endpoint for webhooks of `config`.

    Raises ValueError in the words of client-go's transport, OSError.
    """
    authorities, certificate = config.tls()
    parts = urlsplit(config.host)
    return Endpoint(
        # the password must not be in error texts
        url=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}",
        host=parts.hostname or "",
        port=parts.port or (80 if config.is_plain else 443),
        ca_bundle=authorities,
        identity=Identity(
            certificate.certificate if certificate is not None else b"",
            certificate.key if certificate is not None else b"",
            config.authorization(),
            _USER_AGENT,
        ),
        server_name=config.server_name,
        insecure=config.insecure,
        plain=config.is_plain,
        proxy=config.proxy_url,
        has_changing_credentials=bool(config.exec_provider or config.token_file),
    )


class Credentials(Protocol):
    """The identity of calls, if it changes while the server runs: exec plugins, and files with tokens."""

    async def current(self) -> Identity:
        """OSError, ValueError with a sentence."""

    def rejected(self) -> None:
        """The last one was answered 401."""


class TimedOut(ValueError):
    """There was no answer in time, on the last try."""


class Remote:
    """Posts one kind of review to a kubeconfig's server, again and again where the failure may pass."""

    def __init__(
        self,
        endpoint: Endpoint,
        timeout: float,
        sleep: Callable[[float], Any] = asyncio.sleep,
        credentials: Credentials | None = None,
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        """`timeout` and `first_pause`, the wait before the second try, are seconds."""
        self._endpoint = endpoint
        self._first_pause = first_pause
        self._credentials = credentials
        self._timeout = timeout
        self._sleep = sleep
        self._client = WebhookClient(_no_service)

    async def post(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer's object, of the same type. ValueError with client-go's text for whatever goes wrong."""
        body, pause = json.encode(review) + b"\n", self._first_pause
        for step in range(1, _STEPS + 1):
            try:
                answer = await self._client.post(await self._as_now(), body, self._timeout)
                return checked(answer, review)
            except WebhookError as error:
                if error.status == 401 and self._credentials is not None:
                    self._credentials.rejected()
                if step == _STEPS or not error.is_transient:
                    if error.timed_out:
                        # the client's own time limit is named, unlike a request's
                        raise TimedOut(f"{error} (Client.Timeout exceeded while awaiting headers)") from error
                    raise ValueError(str(error)) from error
                wait = pause if error.retry_after is None else max(pause, error.retry_after)
            await self._sleep(wait * (1 + random.random() * _JITTER))
            pause *= _FACTOR
        raise AssertionError("unreachable: the last step answers or raises")

    async def _as_now(self) -> Endpoint:
        """ValueError without credentials."""
        if self._credentials is None:
            return self._endpoint
        try:
            return replace(self._endpoint, identity=await self._credentials.current())
        except (OSError, ValueError) as error:
            raise ValueError(f'Post "{self._endpoint.url}": {error}') from error


def checked(answer: bytes, review: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer's object; one that names no type is taken for the wanted one. ValueError."""
    document = type_meta.read(answer)
    wanted = (review["apiVersion"], review["kind"])
    version, kind = document.version or wanted[0], document.kind or wanted[1]
    if (version, kind) == wanted:
        return document.content
    if not _is_known(version, kind, wanted):
        raise ValueError(not_registered(version, kind))
    names = [f"{api_version.rpartition('/')[2]}.{name}" for api_version, name in ((version, kind), wanted)]
    raise ValueError(f"converting ({names[0]}) to ({names[1]}): unknown conversion")


def _is_known(version: str, kind: str, wanted: tuple[str, str]) -> bool:
    """client-go knows reviews in v1beta1 as well, which is served no longer."""
    group = wanted[0].partition("/")[0]
    is_review = kind == wanted[1] and version in (f"{group}/v1", f"{group}/v1beta1")
    return is_review or kind in known_kinds().get(version, ())


def _no_service(namespace: str, name: str, port: int) -> tuple[str, int]:
    raise LookupError(f"a kubeconfig names no Service, but {namespace}/{name}:{port} was asked for")
