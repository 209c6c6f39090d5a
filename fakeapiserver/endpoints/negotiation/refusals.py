"""The refusals of bodies, in upstream's words.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/{create,rest}.go (transformDecodeError), pkg/runtime/serializer/recognizer.
"""

from typing import Final

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer.go_json import YAMLError
from fakeapiserver.endpoints.negotiation.type_meta import NoGroupVersion
from fakeapiserver.registry.generic.kind import Kind

_SHOWN_BYTES: Final = 30


class CannotBeHandled(StatusError):
    """400: the body isn't an object of the path's kind."""


def cannot_be_handled(obj: Object, kind: Kind, why: str) -> CannotBeHandled:
    """Returns the refusal with the type that the body names (upstream: transformDecodeError)."""
    name = obj.get("kind") or kind.gvk.kind
    version = GroupVersion.parse(obj.get("apiVersion") or str(kind.gvk.group_version)).version
    why = why if kind.reword is None else kind.reword(why)
    return _refusal(f"{name} in version {go_quote(version)} cannot be handled as a {kind.gvk.kind}: {why}")


def without_version(obj: Object, kind: Kind, why: str) -> CannotBeHandled:
    """Returns the refusal of a custom resource whose version is null or missing."""
    return _refusal(f'{obj["kind"]} in version "" cannot be handled as a {kind.gvk.kind}: {why}')


def _refusal(message: str) -> CannotBeHandled:
    return CannotBeHandled(new_bad_request(message).status)


def unrecognized(kind: Kind, data: bytes, why: str) -> StatusError:
    """400 for a body whose type can't be read."""
    return new_bad_request(
        f"the object provided is unrecognized (must be of type {kind.gvk.kind}): {why} ({shown(data)})"
    )


def other_version(named: GroupVersionKind, gvk: GroupVersionKind) -> StatusError:
    """400 for a body in another version than the path's."""
    return new_bad_request(
        f"the API version in the data ({named.group_version}) does not match the expected API version ({gvk.group_version})"
    )


def type_meta_error(error: ValueError) -> str:
    """Returns the text of an error of the decoder that reads only kind and apiVersion."""
    return str(error) if isinstance(error, NoGroupVersion | YAMLError) else json_parse_error(str(error))


def json_parse_error(why: str) -> str:
    return f"couldn't get version/kind; json parse error: {why}"


def shown(data: bytes) -> str:
    """Returns the start of a body as upstream's messages show it: text when it looks like an object, else hexadecimal."""
    if not data:
        return "<empty>"
    if data.startswith(b"{"):
        return (
            data.decode(errors="replace")
            if len(data) <= _SHOWN_BYTES
            else data[:_SHOWN_BYTES].decode(errors="replace") + " ..."
        )
    return data.hex() if len(data) <= _SHOWN_BYTES else data[:_SHOWN_BYTES].hex() + " ..."


# ------------------------------------------------- complaints of strict decoding


def report_strictly(
    complaints: list[str], kind: Kind, validation: str, warnings: list[str], obj: Object | None = None
) -> None:
    """Adds the complaints to `warnings`. Raises StatusError 400 for Strict, with the type of `obj`; Ignore does nothing."""
    if not complaints or validation == "Ignore":
        return
    if validation == "Strict":
        raise cannot_be_handled(obj or {}, kind, "strict decoding error: " + ", ".join(complaints))
    for complaint in complaints:
        warnings += yaml_warnings(complaint)


def yaml_warnings(complaint: str) -> list[str]:
    """YAML's duplicates come as one error of several lines; each is a warning of its own (upstream: parseYAMLWarnings)."""
    first, *rest = complaint.split("\n")
    return [line.strip() for line in rest] if first == "yaml: unmarshal errors:" else [complaint]
