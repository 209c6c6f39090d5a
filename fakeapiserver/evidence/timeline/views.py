"""The contents of a recording beside its records: the objects at revisions, their rows of tables, and the bodies of requests.

The values of Secrets are replaced by their sizes.
"""

import asyncio
from base64 import b64decode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from fakeapiserver.admission.steps import PluginStep
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.controller_runtime.webhook.admission import json_patch
from fakeapiserver.endpoints.negotiation import table
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.evidence.timeline.recorder import Recorder
from fakeapiserver.evidence.timeline.records import AdmissionStep
from fakeapiserver.evidence.timeline.states import named
from fakeapiserver.registry.generic.interfaces import NotConverted
from fakeapiserver.storage.interface import StoredObject

# So many states are read until other requests get a turn.
_TURN: Final = 100
_SECRETS: Final = ("", "secrets")
_VALUES: Final = ("data", "stringData")
# kubectl keeps the whole object there.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class ShownState(Struct, omit_defaults=True):
    """An object, and its cells as `kubectl get -o wide` prints them; None for what wasn't asked for or can't be shown."""

    object: Object | None = None
    cells: list[Any] | None = None


class Column(Struct):
    """A column of a resource's table. Those whose priority isn't 0 are for `-o wide`."""

    name: str
    priority: int


class States(Struct):
    """The states at revisions, and the columns of their resources by `r`."""

    states: dict[int, ShownState] = field(default_factory=dict)
    columns: dict[str, list[Column]] = field(default_factory=dict)


class ShownRequest(Struct):
    """The bodies of a request and its answer, the object before and after it, and the steps of admission.
    None for what isn't kept or secret."""

    body: Any
    answer: Any
    before: Any
    after: Any
    admission: list[AdmissionStep]


# A request without bodies.
NOTHING: Final = ShownRequest(None, None, None, None, [])
_decode_request: Final = msgspec.json.Decoder(ShownRequest).decode


async def states(recorder: Recorder, revisions: Iterable[int], *, objects: bool = True, cells: bool = True) -> States:
    """The states that were written at these revisions. Forgotten ones are left out."""
    shown = States()
    for number, revision in enumerate(revisions, 1):
        stored = recorder.states.get(revision)
        if stored is not None:
            key = recorder.states.resource(stored.key)
            scope = _scope(recorder.scopes, *key)
            shown.states[revision] = state = ShownState()
            if objects:
                state.object = _object(stored, scope, is_secret=key == _SECRETS)
            if cells and scope is not None:
                state.cells = _cells(stored, scope)
                if (r := named(*key)) not in shown.columns:
                    shown.columns[r] = [Column(column["name"], column["priority"]) for column in scope.columns]
        if number % _TURN == 0:
            await asyncio.sleep(0)
    return shown


def request(recorder: Recorder, number: int) -> ShownRequest | None:
    """The bodies of a request; None if they are forgotten."""
    if earlier := recorder.requests.earlier(number):
        return _decode_request(earlier)
    details = recorder.requests.details(number)
    if details is None:
        return None
    entry, written = details.entry, details.written
    before = after = None
    if written is not None and entry.content is not None:
        before, after = (_state(recorder, stored) for stored in (written.previous, written.current))
    return ShownRequest(entry.body, entry.answer, before, after, [*map(_step, details.steps)])


def _state(recorder: Recorder, stored: StoredObject | None) -> Object | None:
    if stored is None:
        return None
    key = recorder.states.resource(stored.key)
    return _object(stored, _scope(recorder.scopes, *key), is_secret=key == _SECRETS)


def _scope(scopes: RequestScopes, group: str, resource: str) -> RequestScope | None:
    """The resource in its preferred version; None if it isn't served any more."""
    view = scopes.table.group(group)
    for version in view.versions if view is not None else ():
        scope = scopes.lookup(group, version.gv.version, resource)
        if scope is not None and scope.store is not None:
            return scope
    return None


def _object(stored: StoredObject, scope: RequestScope | None, *, is_secret: bool) -> Object:
    value = stored.value
    if scope is not None:
        with suppress(NotConverted, StatusError):  # without its conversion webhook, the stored version is shown
            value = scope.served(value)
    obj: Object = msgspec.json.decode(value)
    return without_values(obj) if is_secret else obj


def _cells(stored: StoredObject, scope: RequestScope) -> list[Any] | None:
    try:
        cells: list[Any] = table.row(scope, scope.internal(stored.value), "None")["cells"]
    except (NotConverted, StatusError):
        return None
    return cells


def without_values(secret: Object) -> Object:
    """A Secret with the sizes of its values in place of these."""
    shown = {**secret}
    for name in _VALUES:
        values = secret.get(name)
        if isinstance(values, Mapping):
            shown[name] = {key: f"<{_size(value, encoded=name == 'data')} bytes>" for key, value in values.items()}
    metadata = secret.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if _LAST_APPLIED in annotations:
        shown["metadata"] = {**metadata, "annotations": {**annotations, _LAST_APPLIED: "<not shown>"}}
    return shown


def _size(value: object, *, encoded: bool) -> int:
    text = value if isinstance(value, str) else ""
    return len(b64decode(text)) if encoded else len(text.encode())


def _step(step: PluginStep) -> AdmissionStep:
    if step.patch:
        return AdmissionStep(step.plugin, step.kind, msgspec.json.decode(step.patch))
    before, after = (msgspec.json.decode(text or b"null") for text in (step.before, step.after))
    return AdmissionStep(step.plugin, step.kind, json_patch(before, after) if step.after else [])
