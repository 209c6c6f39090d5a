"""Reviews: what webhooks answer with, AdmissionReview and ConversionReview alike, as Go's codecs read it.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/{json/json.go,versioning/versioning.go}, k8s.io/api/admission/v1/types.go.
"""

from collections import ChainMap
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.builtin import compile_builtin
from fakeapiserver.apimachinery.schema.resolve import Definitions, Schema
from fakeapiserver.apimachinery.serializer import type_meta
from fakeapiserver.apis import scheme

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.builtin import BuiltinType

VERSIONS: Final = ("v1", "v1beta1")
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_TEXT: Final[Schema] = {"type": "string"}
RAW: Final[Schema] = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.runtime.RawExtension"}


class BadReview(ValueError):
    """The answer is not a valid review; the text is upstream's."""


def struct(name: str, *, pointer: bool = False) -> Schema:
    """A member that is a struct: the definition's name."""
    target = {"$ref": f"#/components/schemas/{name}"}
    return {"allOf": [target], "x-go-type": f"{'*' * pointer}{'.'.join(name.rsplit('.', 2)[1:])}"}


def named_text(go_type: str) -> Schema:
    """A member that is text, of a type of its own; `*{version}.PatchType` is a pointer, `types.UID!` is never left out."""
    return {**_TEXT, "x-go-type": go_type}


UID: Final = named_text("types.UID!")
KIND: Final = _META + "GroupVersionKind"
RESOURCE: Final = _META + "GroupVersionResource"
STATUS: Final = _META + "Status"


class ReviewKind(Struct, frozen=True, eq=False):
    """A kind of review; `request` and `response` are the members of its two parts."""

    group: str
    kind: str
    request: Mapping[str, Schema]
    response: Mapping[str, Schema]

    def version_of(self, accepted: list[str]) -> str:
        """The first version that both sides know, empty without one."""
        return next((version for version in accepted if version in VERSIONS), "")

    def decode(self, data: bytes, version: str) -> Object:
        """The body of a webhook's answer as a review of `version`, with what Go's types have of it. BadReview when it is something
        else."""
        try:
            document = type_meta.read(data)
        except ValueError as error:
            raise BadReview(str(error)) from None
        expected = f"{self.group}/{version}"
        # What is missing is taken from what was expected.
        kind, api_version = document.kind or self.kind, document.version or expected
        if (kind, api_version) != (self.kind, expected):
            self._check_other(document.content, kind, api_version)
            raise BadReview(self._other_kind(kind, api_version, version))
        return self._settled(document.content, version)

    def _check_other(self, obj: Object, kind: str, api_version: str) -> None:
        """A review of the other version is read before it turns out to be one."""
        group, _, version = api_version.rpartition("/")
        if (kind, group) == (self.kind, self.group) and version in VERSIONS:
            self._settled(obj, version)

    def _settled(self, obj: Object, version: str) -> Object:
        try:
            _compiled(self, version).decode(obj)
        except ValueError as error:
            raise BadReview(str(error)) from None
        return obj

    def _other_kind(self, kind: str, api_version: str, version: str) -> str:
        known = (kind, api_version) == ("Status", "v1") or (
            kind == self.kind and api_version in [f"{self.group}/{known}" for known in VERSIONS]
        )
        if known:
            source = GroupVersion.parse(api_version).version
            return f"converting ({source}.{kind}) to ({version}.{self.kind}): unknown conversion"
        shown = f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)}"
        return f'{shown} in scheme "pkg/runtime/scheme.go:111"'

    def check_kind(self, obj: Object, version: str) -> None:
        """BadReview unless it says what it is, which v1 asks for."""
        kind, api_version = obj.get("kind") or "", obj.get("apiVersion") or ""
        if not (kind and api_version):
            wanted = f"{self.group}/{version}, Kind={self.kind}"
            raise BadReview(f"expected webhook response of {wanted}, got {api_version or '/'}, Kind={kind}")


def _of_version(member: Schema, version: str) -> Schema:
    go_type = member.get("x-go-type", "")
    return {**member, "x-go-type": go_type.replace("{version}", version)}


@cache
def _compiled(review: ReviewKind, version: str) -> "BuiltinType":
    """The Go types of a review, built from those that are recorded."""
    place, stem = f"io.k8s.{review.group}.{version}.", review.kind.removesuffix("Review")
    parts = {f"{place}{stem}Request": review.request, f"{place}{stem}Response": review.response}
    own: dict[str, Schema] = {
        name: {"type": "object", "properties": {key: _of_version(member, version) for key, member in members.items()}}
        for name, members in parts.items()
    }
    members = {"kind": _TEXT, "apiVersion": _TEXT}
    request, response = (struct(name, pointer=True) for name in parts)
    own[place + review.kind] = {
        "type": "object",
        "properties": {**members, "request": request, "response": response},
        "x-kubernetes-group-version-kind": [],
    }
    for name, word in ((KIND, "kind"), (RESOURCE, "resource")):
        own[name] = {"type": "object", "properties": dict.fromkeys(("group", "version", word), _TEXT)}
    definitions: Definitions = ChainMap(own, scheme.load().definitions)  # type: ignore[arg-type]
    return compile_builtin(definitions, place + review.kind)


def check_uid(uid: str, answer: Mapping[str, Any]) -> None:
    """BadReview for an answer to another question."""
    given = answer.get("uid") or ""
    if given != uid:
        raise BadReview(f"expected response.uid={go_quote(uid)}, got {go_quote(given)}")
