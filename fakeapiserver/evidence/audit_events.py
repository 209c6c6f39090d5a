"""Requests as the events of an audit log, for tools that read audit logs.

Upstream: k8s.io/apiserver/pkg/apis/audit/v1/types.go. `--audit-log-path` has the events as they happen, by a policy; these are made of the
request log afterwards, and have its bodies but no annotations.
"""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

import msgspec

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339_micro
from fakeapiserver.evidence.entry import RequestEntry

_API_VERSION: Final = "audit.k8s.io/v1"
_REFERENCE: Final = {
    "resource": "resource",
    "namespace": "namespace",
    "name": "name",
    "group": "apiGroup",
    "version": "apiVersion",
    "subresource": "subresource",
}


def events(entries: Iterable[RequestEntry]) -> list[Object]:
    """Returns an Event for each request that was answered. `auditID` is the request's `seq` in the form of a UUID."""
    return [_event(entry) for entry in entries if entry.status]


def encoded(events: Iterable[Object]) -> bytes:
    """Returns the events as an audit log has them: a line of JSON for each."""
    return b"".join(msgspec.json.encode(event) + b"\n" for event in events)


def _event(entry: RequestEntry) -> Object:
    body, answer = entry.body, entry.answer
    has_bodies = body is not None or answer is not None
    is_open = entry.verb == "watch" and not entry.refused and not entry.ended
    event: Object = {
        "kind": "Event",
        "apiVersion": _API_VERSION,
        "level": "RequestResponse" if has_bodies else "Metadata",
        "auditID": str(UUID(int=entry.seq)),
        "stage": "ResponseStarted" if is_open else "ResponseComplete",
        "requestURI": entry.uri,
        "verb": entry.verb,
        "user": {"username": entry.user, "groups": [*entry.groups]},
        "sourceIPs": [entry.connection.rpartition(":")[0]] if entry.connection else [],
        "userAgent": entry.user_agent,
    }
    if entry.resource:
        reference = {name: getattr(entry, field) for field, name in _REFERENCE.items()}
        event["objectRef"] = {name: value for name, value in reference.items() if value}
    status = {"reason": entry.reason, "message": entry.message} if entry.refused else {}
    given = {name: value for name, value in status.items() if value}
    failure = {"status": "Failure"} if entry.refused else {}
    event["responseStatus"] = {"metadata": {}, **failure, **given, "code": entry.status}
    objects = {"requestObject": body, "responseObject": answer}
    event |= {name: value for name, value in objects.items() if value is not None}
    event["requestReceivedTimestamp"] = rfc3339_micro(entry.time)
    event["stageTimestamp"] = rfc3339_micro(entry.time + entry.duration)
    if entry.fault:
        event["annotations"] = {"fakeapiserver/fault": entry.fault}
    return event
