"""The state from which a server starts in place of a fresh one: of another cluster, or of a file."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from fakeapiserver.auth.service_account_keys import ServiceAccountKeys
from fakeapiserver.clock import AdjustableClock
from fakeapiserver.server.own_certificates import Certificates
from fakeapiserver.storage.mvcc import MVCC

if TYPE_CHECKING:
    from fakeapiserver.controller_manager.manager import Mode


class Origin(Struct, frozen=True, kw_only=True):
    """A server takes copies of `storage` and `clock`, so that several servers can start from one origin.

    `certificates`, `admin_token`, `keys`: those of another server; by default a server makes its own.
    `modes`: of controllers. `metrics`: the metrics APIs that are served.
    """

    storage: MVCC
    clock: AdjustableClock
    certificates: Certificates | None = None
    admin_token: str = ""
    keys: ServiceAccountKeys | None = None
    modes: "Mapping[str, Mode]" = field(default_factory=dict)
    metrics: Collection[str] = ()
