"""The options that contradict --read-only: those that let the server itself write."""

from typing import Final

from fakeapiserver.controller_manager.descriptor import selected
from fakeapiserver.server.options.config import Config

_WRITING: Final = (
    "load",
    "nodes",
    "stages",
    "local-storage",
    "cloud-storage",
    "load-balancers",
    "metrics",
    "crds",
    "webhooks",
    "step-controllers",
)


def check(config: Config) -> None:
    """Raises ValueError, with one sentence, for a configuration that can't be read-only."""
    if not config.etcd.servers and config.data_dir is None:
        raise ValueError("--read-only is for what exists already: name it by --etcd-servers or --data-dir")
    for flag in _WRITING:
        if getattr(config, flag.replace("-", "_")):
            raise ValueError(f"--read-only: leave --{flag} out, with which the server writes objects of its own")
    if "controllers" in config.given and selected(config.controllers):
        raise ValueError("--read-only: leave --controllers out, since controllers write")
