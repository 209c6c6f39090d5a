"""The options of a cluster: what `Cluster(…)`, `AsyncCluster(…)` and the marker `fake_cluster` take."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Self, TypedDict, Unpack

from fakeapiserver.cluster import arguments
from fakeapiserver.evidence.request_log import KEPT
from fakeapiserver.server.options.config import Config, EtcdOptions
from fakeapiserver.server.projects.manifests import Sources


class ClusterOptions(TypedDict, total=False):
    """Every option may be left out. `Cluster` says what they mean. Names may also be one text (`"none"`, `"Node,RBAC"`), numbers
    may be digits, and a version a float."""

    port: int | str
    authorization_mode: Iterable[str]
    controllers: Iterable[str]
    step_controllers: Iterable[str]
    nodes: int | str
    stages: Sources
    local_storage: bool
    cloud_storage: bool
    load_balancers: bool
    metrics: Iterable[str]
    kubernetes_version: str | float
    feature_gates: Mapping[str, bool]
    runtime_config: Mapping[str, str] | Mapping[str, bool]
    crds: Sources
    objects: Sources
    webhooks: Sources
    webhook_port: int | str
    etcd_servers: Iterable[str]
    etcd_prefix: str
    etcd_cafile: str | os.PathLike[str]
    etcd_certfile: str | os.PathLike[str]
    etcd_keyfile: str | os.PathLike[str]
    storage_media_type: str
    encryption_provider_config: str | os.PathLike[str]
    read_only: bool
    data_dir: str | os.PathLike[str]
    sync: str
    seed: int | str
    stopped_at: float | str | datetime
    kept_requests: int | str
    kept_request_bytes: int | str
    ui: bool


# The options whose values are fields of EtcdOptions.
_ETCD: Final = {
    "etcd_servers": "servers",
    "etcd_prefix": "prefix",
    "etcd_cafile": "cafile",
    "etcd_certfile": "certfile",
    "etcd_keyfile": "keyfile",
    "storage_media_type": "media_type",
    "encryption_provider_config": "encryption_config",
}


class Configured:
    """The options of a cluster, checked, for both faces."""

    def __init__(self, **options: Unpack[ClusterOptions]) -> None:
        self._config, self._objects = _read(options)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """A cluster with any configuration that `fakeapiserver serve` has flags for."""
        cluster = cls()
        cluster._config = config
        return cluster


def config_of(options: ClusterOptions) -> Config:
    """The server's configuration with these options, without `objects`. Raises as `Cluster` does."""
    return _read(options)[0]


def _read(options: ClusterOptions) -> tuple[Config, Sources]:
    """The configuration, and the objects to apply."""
    fields: dict[str, Any] = {}
    if options:
        fields = arguments.read(options)
    objects: Sources = fields.pop("objects", ())
    if "port" in fields:
        fields["secure_port"] = fields.pop("port")
    given = frozenset(name.replace("_", "-") for name in fields)
    etcd = EtcdOptions(**{field: fields.pop(name) for name, field in _ETCD.items() if name in fields})
    config = Config(**{"records_access": True, "kept_requests": KEPT, "given": given, "etcd": etcd, **fields})
    if options:
        arguments.check_state(config, options)
    return config, objects
