"""The flags that a server was started with, by kube-apiserver's names."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from fakeapiserver.server.options.config import Config

# Fields of the configuration that no flag of kube-apiserver stands for.
_NO_FLAGS: Final = frozenset(
    {
        "cloud-storage",
        "controllers",
        "crds",
        "data-dir",
        "etcd-binary",
        "etcd-starts",
        "given",
        "kubernetes-version",
        "load-balancers",
        "local-storage",
        "metrics",
        "nodes",
        "read-only",
        "records-access",
        "step-controllers",
        "sync",
        "ui",
        "ui-port",
        "warnings",
        "webhook-cert-dir",
        "webhook-port",
        "webhooks",
    }
)


def flags(config: Config) -> dict[str, object]:
    """Returns the value of each flag."""
    return {name: value for name, value in _flags(config) if name not in _NO_FLAGS}


def _flags(options: Struct, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yields name and value of a flag for each field, also of nested options: `audit.log.path` is audit-log-path."""
    for field in options.__struct_fields__:
        name, value = f"{prefix}{field}".replace("_", "-"), getattr(options, field)
        if isinstance(value, Struct):
            yield from _flags(value, f"{name}-")
        else:
            yield name, value
