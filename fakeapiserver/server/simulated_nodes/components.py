"""The components that run beside the controllers: simulated nodes, and what stands in for a cloud's load balancers and storage."""

from collections.abc import Sequence

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.clock import Timers
from fakeapiserver.controller_manager.clients import KWOK
from fakeapiserver.controller_manager.manager import Extra
from fakeapiserver.endpoints.services import SimulatedNodes
from fakeapiserver.nodes import cloud_storage, kubelet, load_balancers, local_storage, runtime
from fakeapiserver.nodes.scheduler import controller as scheduler
from fakeapiserver.nodes.simulation import Simulation
from fakeapiserver.nodes.stages import sources
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.simulated_nodes import kubelet_server


def simulate(api: APIServer, clock: Timers, stages: Sequence[Object]) -> Simulation:
    """Makes the nodes that the configuration asks for, and lets the server reach their kubelets."""
    config = api.config
    simulation = Simulation(config.nodes, dual_stack="," in config.service_cluster_ip_range)
    simulation.kubelet_version = api.table.scheme.facts["version"]["gitVersion"]
    simulation.staged = sources.kinds(stages)
    api.simulation = simulation
    api.simulated_nodes = SimulatedNodes(
        runtime.SimulatedKubelets(simulation, clock),
        kubelet_server.KubeletServer(simulation, clock, api.metrics_apis.values),
    )
    return simulation


def objects(config: Config) -> Sequence[Object]:
    """Returns the objects that exist from the start."""
    local_objects = local_storage.objects() if config.local_storage else ()
    return [*local_objects, *(cloud_storage.objects() if config.cloud_storage else ())]


def local(config: Config, simulation: Simulation | None, stages: Sequence[Object]) -> dict[str, Extra]:
    """Returns what runs in place of the parts of a cluster that aren't here, by name."""
    extra: dict[str, Extra] = {}
    if simulation is not None:
        extra["kubelet"] = Extra(kubelet.USER, lambda context: kubelet.new(context, simulation))
        extra["kube-scheduler"] = Extra(scheduler.USER, scheduler.new)
        extra["kwok"] = Extra(KWOK, lambda context: sources.new(context, simulation, stages))
    if config.local_storage:
        extra[local_storage.NAME] = Extra(local_storage.ACCOUNT, local_storage.new)
    if config.cloud_storage:
        extra[cloud_storage.NAME] = Extra(cloud_storage.ACCOUNT, cloud_storage.new)
    if config.load_balancers:
        extra[load_balancers.NAME] = Extra(load_balancers.ACCOUNT, load_balancers.new)
    return extra
