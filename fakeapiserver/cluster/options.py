"""The options of a cluster: what `Cluster(…)`, `AsyncCluster(…)` and the marker `fake_cluster` take."""

from collections.abc import Mapping, Sequence
from typing import Self, TypedDict, Unpack

from fakeapiserver.server.config import Config
from fakeapiserver.server.manifests import Sources


class ClusterOptions(TypedDict, total=False):
    """Every option may be left out. See `Cluster` for what they mean."""

    port: int
    authorization_mode: Sequence[str]
    controllers: Sequence[str]
    step_controllers: Sequence[str]
    nodes: int
    stages: Sources
    local_storage: bool
    load_balancers: bool
    metrics: Sequence[str]
    kubernetes_version: str
    feature_gates: Mapping[str, bool]
    runtime_config: Mapping[str, str]
    crds: Sources
    objects: Sources
    webhooks: Sources
    webhook_port: int


def config_of(options: ClusterOptions) -> Config:
    """The server's configuration with these options."""
    fields: dict[str, object] = {**options}
    if "port" in fields:
        fields["secure_port"] = fields.pop("port")
    return Config(records_access=True, records_requests=True, **fields)  # type: ignore[arg-type]


class Configured:
    """What both faces of a cluster are made from."""

    _objects: Sources = ()

    def __init__(self, **options: Unpack[ClusterOptions]) -> None:
        self._objects = options.pop("objects", ())
        self._config = config_of(options)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """A cluster with any configuration that `fakeapiserver serve` has flags for."""
        cluster = cls()
        cluster._config = config
        return cluster
