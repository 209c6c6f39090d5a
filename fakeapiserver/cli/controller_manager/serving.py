"""The port of `fakeapiserver controller-manager`: who may use it, its certificate, and the tasks that it needs."""

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fakeapiserver.cli.connection import load_config
from fakeapiserver.cli.controller_manager import configuration, delegated, endpoints
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, TransportError
from fakeapiserver.client.leaderelection import LeaderElector
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.controller_manager.manager import ControllerManager
from fakeapiserver.server.app import Application
from fakeapiserver.server.exposition import BuildMetrics
from fakeapiserver.server.http.serving import Server
from fakeapiserver.server.http.tls_context import server_context
from fakeapiserver.transport import certificates
from fakeapiserver.transport.key_pair import KeyPair

if TYPE_CHECKING:
    from fakeapiserver.cli.controller_manager.command import Options

log = logging.getLogger(__name__)

Table = dict[str, Any]
_TOLERANCE: Final = 20.0  # seconds that a leader may be late before /healthz says so


async def serve_endpoints(
    options: "Options", manager: ControllerManager, elector: LeaderElector | None, table: Table, version: dict[str, str]
) -> tuple[Server | None, Sequence[asyncio.Task[None]]]:
    """The server, and what runs for it. OSError and ValueError; StatusError and TransportError when authorities can't be looked up."""
    if not options.secure_port:
        return None, ()

    headers = delegated.RequestHeaderOptions(
        options.requestheader_client_ca_file,
        options.requestheader_allowed_names,
        options.requestheader_username_headers,
        options.requestheader_uid_headers,
        options.requestheader_group_headers,
        options.requestheader_extra_headers_prefix,
    )
    authentication = delegated.DelegatedAuthentication(
        _client(options.authentication_kubeconfig),
        manager.clock,
        client_ca_file=options.client_ca_file,
        request_header=headers,
    )
    background: list[asyncio.Task[None]] = []
    if not options.authentication_skip_lookup:
        try:
            await authentication.look_up()
        except (StatusError, TransportError, TimeoutError) as error:
            if not options.authentication_tolerate_lookup_failure:
                raise
            log.warning("authorities could not be looked up: %s", error)
        background.append(asyncio.create_task(authentication.run()))
    manager.metrics.registry.register(BuildMetrics(version))
    application = Application(
        endpoints.Endpoints(
            manager,
            authentication,
            delegated.authorizer(
                _client(options.authorization_kubeconfig),
                manager.clock,
                always_allow_paths=options.authorization_always_allow_paths,
                allow_ttl=options.authorization_webhook_cache_authorized_ttl,
                deny_ttl=options.authorization_webhook_cache_unauthorized_ttl,
            ),
            configuration.flag_texts(table, options.given),
            configuration.configuration(table, options.given),
            version,
            time.time(),
            partial(elector.check, _TOLERANCE) if elector is not None else None,
        )
    )
    pair = _serving_pair(options)
    context = server_context(pair.certificate, pair.key)
    server = Server(application, host=options.bind_address, port=options.secure_port, tls=context)
    try:
        await server.start()
    except OSError as error:
        place = f"{options.bind_address}:{options.secure_port}"
        raise OSError(f"failed to listen on {place}: {error.strerror or error}") from error
    return server, background


def _client(path: str) -> DynamicClient | None:
    return DynamicClient(RESTClient(load_config(path))) if path else None


def _serving_pair(options: "Options") -> KeyPair:
    """Returns the key pair from the files, or a new one for this address."""
    if options.tls_cert_file is not None and options.tls_private_key_file is not None:
        return certificates.load_pair(options.tls_cert_file, options.tls_private_key_file)
    names = ["localhost", "127.0.0.1", *({options.bind_address} - {"0.0.0.0", "::", "127.0.0.1"})]
    return certificates.issue_server(certificates.create_authority("fakeapiserver-controller-manager"), names)
