"""The event of a request at each stage.

Upstream: k8s.io/apiserver/pkg/apis/audit/v1/types.go, pkg/audit/{request,format}.go.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339_micro
from fakeapiserver.auth.interfaces import Attributes, UserInfo
from fakeapiserver.server.filters.audit.policy import API_VERSION, Level

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties

_MOST_USER_AGENT: Final = 1024
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9])")
_checked: Final = msgspec.json.Decoder(msgspec.Raw).decode
# The fields of a reference in upstream's order, and those that an object can complete.
_REFERENCE: Final = (
    "resource",
    "namespace",
    "name",
    "uid",
    "apiGroup",
    "apiVersion",
    "resourceVersion",
    "subresource",
)
_TOLD: Final = ("namespace", "name", "uid", "resourceVersion")
# The fields of a Status in an event, in this order.
_STATUS: Final = ("status", "message", "reason", "details", "code")


@dataclass(slots=True, kw_only=True)
class Event:
    """The event of a request so far. Times are seconds since the epoch, objects JSON texts."""

    level: Level
    audit_id: str
    request_uri: str
    verb: str
    user: UserInfo
    source_ips: tuple[str, ...]
    user_agent: str
    received: float
    object_ref: Object | None = None
    impersonated_user: UserInfo | None = None
    constraint: str = ""
    response_status: Object | None = None
    request_object: bytes | None = None
    response_object: bytes | None = None
    annotations: dict[str, str] = field(default_factory=dict)

    _same: Object = field(init=False)
    _received: str = field(init=False)

    def __post_init__(self) -> None:
        """Prepares the fields that the events of all stages share; the stage is inserted later."""
        self._same = {
            "kind": "Event",
            "apiVersion": API_VERSION,
            "level": self.level.text,
            "auditID": self.audit_id,
            "stage": "",
            "requestURI": self.request_uri,
            "verb": self.verb,
            "user": _user(self.user),
        }
        self._received = rfc3339_micro(self.received)

    def at(self, stage: str, time: float) -> Object:
        """The event as it is written down, fields in upstream's order. ValueError where an object is no JSON."""
        event_object = self._same.copy()
        event_object["stage"] = stage
        if self.impersonated_user is not None:
            event_object["impersonatedUser"] = _user(self.impersonated_user)
        if self.constraint:
            event_object["authenticationMetadata"] = {"impersonationConstraint": self.constraint}
        if self.source_ips:
            event_object["sourceIPs"] = self.source_ips
        if self.user_agent:
            event_object["userAgent"] = self.user_agent
        if self.object_ref is not None:
            event_object["objectRef"] = self.object_ref
        if self.response_status is not None:
            event_object["responseStatus"] = self.response_status
        if self.request_object is not None:
            event_object["requestObject"] = _in_one_line(self.request_object)
        if self.response_object is not None:
            event_object["responseObject"] = _in_one_line(self.response_object)
        event_object["requestReceivedTimestamp"] = self._received
        event_object["stageTimestamp"] = self._received if time == self.received else rfc3339_micro(time)
        if self.annotations:
            event_object["annotations"] = dict(sorted(self.annotations.items()))
        return event_object

    def complete_reference(self, obj: Object) -> None:
        """Completes the object's reference from its body."""
        reference, meta = self.object_ref, obj.get("metadata")
        if reference is None or not isinstance(meta, dict):
            return
        told = {key: meta[key] for key in _TOLD if not reference.get(key) and meta.get(key)} | reference
        # a new one: an earlier event may still wait with the old one
        self.object_ref = {key: told[key] for key in _REFERENCE if key in told}


def object_reference(attributes: Attributes) -> Object | None:
    if not attributes.resource_request:
        return None
    reference = {
        "resource": attributes.resource,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "apiGroup": attributes.api_group,
        "apiVersion": attributes.api_version,
        "subresource": attributes.subresource,
    }
    return {key: value for key, value in reference.items() if value}


def status_of(status: Object | None, code: int) -> Object:
    """An answer's status: of a Status the fields that are bounded, of anything else the code only."""
    status_object: Object = {name: status[name] for name in _STATUS if name in status} if status else {}
    return {"metadata": {}, **status_object, "code": code}


@lru_cache(1024)
def source_ips(forwarded_for: str, real_ip: str, peer: str) -> tuple[str, ...]:
    """Every address that a request says it has come from, its connection's last."""
    addresses = [address for part in forwarded_for.split(",") if (address := _address(part.strip()))]
    if (real := _address(real_ip)) and real not in addresses:
        addresses.append(real)
    if (own := _address(peer)) and (not addresses or addresses[-1] != own):
        addresses.append(own)
    return tuple(addresses)


def user_agent(text: str) -> str:
    return text if len(text) <= _MOST_USER_AGENT else text[:_MOST_USER_AGENT] + "...TRUNCATED"


def without_managed_fields(obj: Any) -> Any:
    """An object, a list or a Table without any; `obj` itself is changed."""
    if not isinstance(obj, dict):
        return obj
    rows = [row.get("object") for row in obj.get("rows") or () if isinstance(row, dict)]
    items = obj.get("items")
    for one in (obj, *rows, *(items if isinstance(items, list) else ())):
        if isinstance(one, dict) and isinstance(one.get("metadata"), dict):
            one["metadata"].pop("managedFields", None)
    return obj


def with_empties(obj: Any, empties: "Empties") -> Any:
    """An object as it was sent, with the empty lists and maps that decoding takes for none; `obj` itself is changed."""
    for steps, empty in empties.items():
        target = obj
        for step in steps[:-1]:
            target = _at(target, step)
        if isinstance(target, dict) and target.get(str(steps[-1]), empty) is None:
            target[str(steps[-1])] = empty
    return obj


def _at(value: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return value.get(step) if isinstance(value, dict) else None
    return value[step] if isinstance(value, list) and step < len(value) else None


def line(event: Object) -> str:
    """The legacy format: the most important in one line (upstream: EventString)."""
    user, other = event["user"], event.get("impersonatedUser")
    name, groups = user.get("username", "<none>"), user.get("groups")
    told = {
        "id": event["auditID"],
        "stage": event["stage"],
        "ip": next(iter(event.get("sourceIPs", ())), "<unknown>"),
        "method": event["verb"],
        "user": name,
        "groups": _quoted(groups) if groups and "username" in user else "<none>",
        "as": other.get("username", "") if other is not None else "<self>",
        "asgroups": _quoted(other["groups"]) if other is not None and "groups" in other else "<lookup>",
        "user-agent": event.get("userAgent", ""),
        "namespace": event.get("objectRef", {}).get("namespace", "<none>"),
        "uri": event["requestURI"],
    }
    response = event["responseStatus"].get("code", 0) if "responseStatus" in event else "<deferred>"
    words = " ".join(f"{key}={go_quote(value)}" for key, value in told.items())
    return f'{_shortest(event["requestReceivedTimestamp"])} AUDIT: {words} response="{response}"'


def _shortest(micro_time: str) -> str:
    """Without the zeros at the end of the fraction, as Go's RFC3339Nano has it."""
    return micro_time.removesuffix("Z").rstrip("0").removesuffix(".") + "Z"


def _quoted(texts: list[str]) -> str:
    return ",".join(map(go_quote, texts))


def _user(user: UserInfo) -> Object:
    user_object = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in user_object.items() if value}


def _in_one_line(text: bytes | None) -> msgspec.Raw | None:
    """Returns a patch in one line. Raises ValueError if it isn't JSON."""
    if text is None:
        return None
    _checked(text)
    return msgspec.Raw(text.replace(b"\n", b"").replace(b"\r", b""))  # neither stands within a JSON string


def _address(text: str) -> str:
    """Returns an address as Go's net.IP shows it: leading zeros are allowed, zones are not.

    Upstream: netutils.ParseIPSloppy.
    """
    try:
        address = ipaddress.ip_address(_LEADING_ZEROS.sub("", text))
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return "" if address.scope_id else str(address.ipv4_mapped or address)
