"""The ports of `fakeapiserver nodes`: the kubelets', and that of the test control, whose paths `serve --nodes` has too.

Both speak HTTPS, and ask the API server who a client is and what it may do.
"""

import sys
from pathlib import Path
from typing import Final, cast

from fakeapiserver.auth.authenticators.bearertoken import BearerToken
from fakeapiserver.auth.authenticators.x509 import X509
from fakeapiserver.auth.interfaces import Authenticator
from fakeapiserver.auth.union import Union
from fakeapiserver.cli.controller_manager.delegated import TokenReviews, access_reviews
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.clock import SystemClock
from fakeapiserver.endpoints.request import ASGIApplication, Request, Response
from fakeapiserver.nodes.simulation import Simulation
from fakeapiserver.server.app import Application
from fakeapiserver.server.control import nodes as control_nodes
from fakeapiserver.server.control.own_pages import OwnPages
from fakeapiserver.server.http.serving import Server
from fakeapiserver.server.http.tls_context import server_context
from fakeapiserver.server.pages import control as control_pages
from fakeapiserver.server.simulated_nodes.kubelet_access import ControlAccess, KubeletAccess
from fakeapiserver.server.simulated_nodes.kubelet_server import KubeletServer
from fakeapiserver.transport import certificates
from fakeapiserver.transport.ca_bundle import check_bundle
from fakeapiserver.transport.files import read_file
from fakeapiserver.transport.key_pair import KeyPair

# Seconds for which a kubelet keeps decisions of the API server.
_ALLOWED: Final = 300.0
_DENIED: Final = 30.0
_LOOPBACK: Final = "127.0.0.1"


class Ports:
    """Call order: construct, `await open()`, `await close()`."""

    def __init__(self, config: RESTConfig, simulation: Simulation, client_ca_file: Path | None) -> None:
        """config: the API server that authenticates and authorizes; its authority is that of client certificates if no file names
        another one. Raises OSError and ValueError for an unusable file."""
        self._simulation = simulation
        self._clock = SystemClock()
        self._client = RESTClient(config)
        client = DynamicClient(self._client)
        methods: list[Authenticator] = [BearerToken((TokenReviews(client),), clock=self._clock)]
        if authorities := _authorities(config, client_ca_file):
            check_bundle("client-ca-bundle", authorities)
            methods.insert(0, X509(authorities, self._clock))
        self._authenticator = Union(methods)
        self._authorizer = access_reviews(client, self._clock, _ALLOWED, _DENIED)
        self._servers: list[Server] = []

    async def open(self, address: str, kubelet_port: int, control_port: int, pair: KeyPair | None) -> None:
        """Opens the ports that aren't 0: the kubelets' at an address, the control's on loopback. Without `pair` the certificate is
        self-signed. Raises OSError if a port is in use, ValueError for an unusable pair."""
        pair = pair or certificates.issue_server(
            certificates.create_authority("fakeapiserver-kubelets"), [address, _LOOPBACK, "localhost"], "kubelet"
        )
        if kubelet_port:
            kubelets = KubeletServer(self._simulation, self._clock)
            access = KubeletAccess(self._authenticator, self._authorizer, kubelets)
            server = await self._serve(Application(access.handle), address, kubelet_port, pair)
            self._simulation.endpoint = (address, server.port)
        if control_port:
            control = cast(ASGIApplication, control_nodes.nodes_control(self._simulation))

            async def answer(request: Request) -> Response:
                return await control_pages.answer(request, control)

            application = Application(ControlAccess(self._authenticator, self._authorizer, answer).handle)
            await self._serve(OwnPages(application), _LOOPBACK, control_port, pair)
            page = f"https://{_LOOPBACK}:{control_port}/fakeapiserver/docs"
            print(
                f"{page} lists what can be scripted, with credentials of the API server.", file=sys.stderr, flush=True
            )

    async def _serve(self, application: object, host: str, port: int, pair: KeyPair) -> Server:
        server = Server(application, host=host, port=port, tls=server_context(pair.certificate, pair.key))
        await server.start()
        self._servers.append(server)
        return server

    async def close(self) -> None:
        """Closes the ports."""
        for server in self._servers:
            await server.stop()
        self._client.close()


def _authorities(config: RESTConfig, path: Path | None) -> bytes:
    path = path or (None if config.ca_data else config.ca_file)
    return read_file(path) if path is not None else config.ca_data
