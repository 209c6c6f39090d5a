"""The state from which a server starts in place of a fresh one: of another cluster, or of a file."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field, structs

from fakeapiserver.auth.service_account_keys import ServiceAccountKeys
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.own_certificates import Certificates
from fakeapiserver.state import file, found, sources
from fakeapiserver.storage.encryption import configuration
from fakeapiserver.storage.mvcc import MVCC
from fakeapiserver.transport.key_pair import KeyPair

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import Mode
    from fakeapiserver.nodes.simulation import NodesState
    from fakeapiserver.server.projects.local_webhooks import LocalWebhooks


class Origin(Struct, frozen=True, kw_only=True):
    """A server takes copies of `storage` and `clock`, so that several servers can start from one origin.

    `storage`: None for that of a fresh server. `gathered`: objects from elsewhere, which are taken over then.

    `certificates`, or only their `authority`, `admin_token`, `keys`: those of another server; by default a server makes its own.
    `modes`: of controllers. `nodes`: of the simulated nodes. `metrics`: the metrics APIs that are served. `webhooks`: the
    address to which stored configurations lead. `recording`: what the page of that server has recorded, if it has one.
    `title`: where the state is from, for the page.
    """

    storage: MVCC | None = None
    clock: AdjustableClock
    certificates: Certificates | None = None
    authority: KeyPair | None = None
    admin_token: str = ""
    keys: ServiceAccountKeys | None = None
    modes: "Mapping[str, Mode]" = field(default_factory=dict)
    nodes: "NodesState | None" = None
    metrics: Collection[str] = ()
    webhooks: "LocalWebhooks | None" = None
    gathered: "found.Gathered | None" = None
    recording: bytes = b""
    title: str = ""


def saved(origin: Origin, kubernetes_version: str, *, keys: bool) -> "file.Saved":
    """Returns the contents of a file for the origin of a running server; with `keys`, also its private keys."""
    private = None
    if keys:
        assert origin.certificates is not None
        assert origin.keys is not None
        private = private_keys(origin.certificates, origin.admin_token, origin.keys)
    assert origin.storage is not None
    return file.Saved(kubernetes_version, origin.storage, origin.clock.now(), origin.metrics, private, origin.recording)


def private_keys(certificates: Certificates, admin_token: str, keys: ServiceAccountKeys) -> "file.Keys":
    """A server's secrets in the form in which they are saved."""
    authority = certificates.authority
    return file.Keys(authority.certificate.decode(), authority.key.decode(), admin_token, keys.pem().decode())


def origin_of(state: "file.Saved") -> Origin:
    """The origin of servers that start with a saved state. Their clock shows the machine's time, or the saved one if that is later."""
    clock = AdjustableClock()
    clock.forward_to(state.seconds)
    if state.keys is None:
        return Origin(storage=state.storage, clock=clock, metrics=state.metrics, recording=state.recording)
    keys = ServiceAccountKeys()
    keys.use(state.keys.tokens.encode())
    return Origin(
        storage=state.storage,
        clock=clock,
        authority=KeyPair(state.keys.authority_certificate.encode(), state.keys.authority_key.encode()),
        admin_token=state.keys.admin_token,
        keys=keys,
        metrics=state.metrics,
        recording=state.recording,
    )


def load(path: str | os.PathLike[str], config: Config, *, same_version: bool) -> tuple[Config, Origin]:
    """The origin that a file or folder holds, and the configuration of a server for it, with `same_version` of the saved Kubernetes
    version.

    Raises OSError and ValueError for a path that can't be used."""
    encrypted_by = config.etcd.encryption_config
    state = sources.read(path) if encrypted_by is None else sources.read(path, configuration.load(encrypted_by))
    if isinstance(state, found.Gathered):
        return config, Origin(clock=AdjustableClock(config.stopped_at), gathered=state)
    if same_version:
        config = structs.replace(config, kubernetes_version=state.kubernetes_version)
    return config, structs.replace(origin_of(state), title=Path(path).name)
