"""The HTTPS server of the kubelets of all simulated nodes, for an API server in another process.

Upstream: pkg/kubelet/server/server.go, k8s.io/cri-streaming/pkg/streaming/remotecommand/httpstream.go (NewOptions).
"""

import json
from typing import Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.clock import Timers
from fakeapiserver.component_helpers.streaming import KubeletError, Runtime, Streams, Write
from fakeapiserver.controller_runtime.reconcile import Request as PodKey
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.streams import port_forward as port_forwarding
from fakeapiserver.endpoints.streams.connect import container_names, in_container, log_option_errors, log_options
from fakeapiserver.nodes.runtime import SimulatedKubelets
from fakeapiserver.nodes.simulation import Simulation
from fakeapiserver.server.metrics_apis.values import Values
from fakeapiserver.server.simulated_nodes.kubelet_stats import NodeStats, node_stats, resource_metrics, summary
from fakeapiserver.transport.pipe import Pipe

_FLAGS: Final = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}


class KubeletServer:
    """`handle` answers requests (server/app.py)."""

    def __init__(self, simulation: Simulation, clock: Timers, values: Values | None = None) -> None:
        """`values`: what a test has set in the metrics APIs."""
        self._simulation = simulation
        self._values = values or Values()
        self._started = clock.now()
        self._kubelets = SimulatedKubelets(simulation, clock)
        self._clock = clock

    async def handle(self, request: Request, node: str = "") -> Response:
        """`node`: the one that is asked; "": any. ConnectionError: the node's plug is pulled."""
        match request.path.strip("/").split("/"):
            case ["healthz"]:
                return Response(200, b"ok", "text/plain; charset=utf-8")
            case ["pods"]:
                pods = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self._pods()}
                return respond.answer(request, json.dumps(pods).encode(), "application/json")
            case ["metrics", "resource"]:
                text = resource_metrics(self._stats(node), self._clock.now())
                return Response(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")
            case ["stats", "summary"]:
                stats = summary(self._stats(node), self._clock.now())
                return respond.answer(request, json.dumps(stats).encode(), "application/json")
            case ["containerLogs", namespace, name, container]:
                return await self._logs(request, namespace, name, container)
            case ["exec" | "attach" as kind, namespace, name, container]:
                return await self._process(request, kind, namespace, name, container)
            case ["exec" | "attach" as kind, namespace, name, _, container]:
                return await self._process(request, kind, namespace, name, container)
            case ["portForward", namespace, name]:
                return await self._forward(request, namespace, name)
            case ["portForward", namespace, name, _]:
                return await self._forward(request, namespace, name)
        return respond.text(404, "404: Page Not Found\n")

    async def _logs(self, request: Request, namespace: str, name: str, container: str) -> Response:
        try:
            errors = log_option_errors(request, streams=True)
        except StatusError:
            return respond.text(400, '{"message": "Unable to decode query."}')
        if errors:
            return respond.text(422, '{"message": "Invalid request."}')
        pod = self._pod(namespace, name)
        if pod is None:
            return respond.text(404, f"pod {go_quote(name)} does not exist")
        if container not in container_names(pod["spec"]):
            return respond.text(404, f"container {go_quote(container)} not found in pod {go_quote(name)}")
        try:
            chunks = await self._runtime(pod).logs(pod, container, log_options(request, self._clock.now()))
        except KubeletError as error:
            return respond.text(error.status, str(error))
        return Response(content_type="text/plain", stream=chunks)

    async def _process(self, request: Request, kind: str, namespace: str, name: str, container: str) -> Response:
        options: Object = {option: request.param(flag) == "1" for option, flag in _FLAGS.items()}
        options["command"] = command = request.query.get("command", [])
        pod = self._pod(namespace, name)
        if pod is None:
            return respond.text(404, "pod does not exist")
        runtime = self._runtime(pod)

        async def process(streams: Streams) -> int:
            if kind == "exec":
                return await runtime.execute(pod, container, command, streams)
            await runtime.attach(pod, container, streams)
            return 0

        return await in_container(request, options, pod, container, runtime, process)

    async def _forward(self, request: Request, namespace: str, name: str) -> Response:
        pod = self._pod(namespace, name)
        if pod is None:
            return respond.text(404, "pod does not exist")
        runtime, metadata = self._runtime(pod), pod["metadata"]

        async def forward(port: int, received: Pipe, write: Write) -> None:
            await runtime.port_forward(pod, port, received, write)

        texts = [text for value in request.query.get("port", []) for text in value.split(",")]
        if not all(text.isascii() and text.isdigit() and len(text) < 6 for text in texts):
            return respond.text(400, "unable to parse ports")
        options = {"ports": [int(text) for text in texts]}
        try:
            return await port_forwarding.serve(request, options, metadata["name"], metadata["uid"], forward)
        except StatusError as error:
            return respond.text(error.code, str(error))

    def node_of(self, path: str) -> str:
        """Returns the node whose kubelet serves a path; "" if the path names no pod: all nodes share the port."""
        match path.strip("/").split("/"):
            case ["containerLogs" | "exec" | "attach" | "portForward", namespace, name, *_]:
                pod = self._pod(namespace, name)
                return str(pod["spec"]["nodeName"]) if pod is not None else ""
        return ""

    def _pods(self) -> list[Object]:
        known = (self._simulation.pod(request) for request in self._simulation.requests)
        return [pod for pod in known if pod is not None]

    def _pod(self, namespace: str, name: str) -> Object | None:
        """Returns a pod that is bound to a simulated node, or None."""
        pod = self._simulation.pod(PodKey(namespace, name))
        return pod if pod is not None and pod["spec"].get("nodeName") in self._simulation.nodes else None

    def _runtime(self, pod: Object) -> Runtime:
        runtime = self._kubelets.runtime(pod["spec"]["nodeName"])
        assert runtime is not None
        return runtime

    def _stats(self, node: str) -> NodeStats:
        """Returns the statistics of a node, or of all nodes together, which share a port."""
        pods = [pod for pod in self._pods() if node in ("", pod["spec"]["nodeName"])]
        name = node or next(iter(self._simulation.nodes), "")
        return node_stats(name, self._started, pods, self._simulation.behaviours, self._values)
