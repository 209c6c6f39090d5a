"""The part of the test control that is about faults (see application.py)."""

from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Body, HTTPException, Path
from pydantic import BaseModel, Field

from fakeapiserver.faults.injector import ActiveFault
from fakeapiserver.faults.readers import FIELDS
from fakeapiserver.server.control.errors import Body as Fields
from fakeapiserver.server.filters.fault_injection import FaultInjection


class Controlled(Protocol):
    """The part of an API server that has faults."""

    @property
    def faults(self) -> FaultInjection: ...


class Fault(BaseModel):
    """A fault that exists, and its counts."""

    id: int = Field(description="The number that the header Fakeapiserver-Fault names in answers to struck requests")
    fault: dict[str, Any] = Field(description="Its fields, as they were added")
    seen: int = Field(description="The number of requests that matched, struck or not")
    hits: int = Field(description="The number of requests that were struck")


class Wait(Fields):
    """Waits until so many requests were struck, at most `timeout` seconds."""

    hits: int = Field(default=1, ge=1)
    timeout: float = Field(default=10.0, gt=0, le=50)


FaultId = Annotated[int, Path(ge=1)]
# Read by faults/rule.py, whose sentences say what is wrong.
Faults = Annotated[
    dict[str, Any] | list[dict[str, Any]], Body(description=f"One fault or several: {', '.join(FIELDS)}")
]


def router(server: Controlled) -> APIRouter:
    """The paths below /fakeapiserver/faults."""
    routes = APIRouter()

    def known(number: int) -> ActiveFault:
        fault = server.faults.faults.find(number)
        if fault is None:
            raise HTTPException(404, f"there is no fault {number}")
        return fault

    @routes.get("/faults")
    async def list_faults() -> list[Fault]:
        """The faults that exist, in their order."""
        return [_shown(fault) for fault in server.faults.active]

    @routes.post("/faults", status_code=201)
    async def add_faults(faults: Faults) -> list[Fault]:
        """Adds one fault or several; none of them if one can't be read."""
        try:
            added = await server.faults.add(faults if isinstance(faults, list) else [faults])
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        return [_shown(fault) for fault in added]

    @routes.delete("/faults", status_code=204)
    async def clear_faults() -> None:
        """Removes all faults."""
        server.faults.faults.clear()

    @routes.get("/faults/{number}")
    async def read_fault(number: FaultId) -> Fault:
        """A fault with its counts."""
        return _shown(known(number))

    @routes.post("/faults/{number}/wait")
    async def wait_for_hits(number: FaultId, wait: Wait) -> Fault:
        """Returns when so many requests were struck; 504 after the time-out."""
        fault = known(number)
        try:
            await fault.wait(wait.hits, wait.timeout)
        except TimeoutError as error:
            raise HTTPException(504, str(error)) from error
        return _shown(fault)

    @routes.delete("/faults/{number}", status_code=204)
    async def remove_fault(number: FaultId) -> None:
        """Removes a fault: requests that hang go on, and watches get what was held back."""
        server.faults.faults.remove(known(number))

    return routes


def _shown(fault: ActiveFault) -> Fault:
    return Fault(id=fault.id, fault=fault.fields, seen=fault.turns.seen, hits=fault.hits)
