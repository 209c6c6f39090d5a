"""The addresses and node ports that one write of a service allocates and releases."""

from typing import Protocol

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.service.ips import ClusterIPs
from fakeapiserver.registry.core.service.ports import PortOperation


class Writer(Protocol):
    """Writes objects as the server itself; resources are called by their plural and group."""

    async def create(self, resource: str, obj: Object) -> None:
        """StatusError as POST has it."""

    async def remove(self, resource: str, namespace: str, name: str) -> None:
        """StatusError as DELETE has it."""


class Operation(Struct):
    """The addresses and ports that one write allocates and releases."""

    families: tuple[str, ...]
    ips: ClusterIPs
    ports: PortOperation
    taken: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    # Those of `taken` that no client asked for: another one will do.
    chosen: set[str] = field(default_factory=set)

    @property
    def dry_run(self) -> bool:
        return self.ports.dry_run

    def allocate(self, family: str, ip: str) -> None:
        """AllocationError."""
        if self.dry_run:
            self.ips.try_out(family, ip)
        else:
            self.ips.promise(family, ip)
            self.taken.append(ip)

    def allocate_next(self, family: str) -> str:
        """AllocationError."""
        if self.dry_run:
            return self.ips.try_out_next(family)
        ip = self.ips.promise_next(family)
        self.taken.append(ip)
        self.chosen.add(ip)
        return ip

    async def begin(self, *, with_ports: bool) -> None:
        """Forgets what was planned before. `with_ports`: the plan may need node ports."""
        self.keep()
        self.taken.clear()
        self.given_up.clear()
        self.chosen.clear()
        if with_ports:
            await self.ports.begin()

    def keep(self) -> None:
        """Ends the promises of addresses."""
        for ip in self.taken:
            self.ips.keep(ip)
