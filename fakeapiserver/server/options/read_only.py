"""The options that contradict --read-only: those that let the server itself write."""

from collections.abc import Callable
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


def check(config: Config, named: Callable[[str], str] = "--{}".format) -> None:
    """Raises ValueError, with one sentence, for a configuration that can't be read-only. `named`: a flag as its user has written it."""
    option = named("read-only")
    if not config.etcd.servers and config.data_dir is None:
        places = f"{named('etcd-servers')} or {named('data-dir')}"
        raise ValueError(f"{option} is for a state that exists already: name it by {places}")
    for flag in _WRITING:
        if getattr(config, flag.replace("-", "_")):
            raise ValueError(f"{option}: leave {named(flag)} out, with which the server writes objects of its own")
    if "controllers" in config.given and selected(config.controllers):
        raise ValueError(f"{option}: leave {named('controllers')} out, since controllers write")
