"""Reviews: what webhooks answer with, AdmissionReview and ConversionReview alike, as Go's codecs read it.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/{json/json.go,versioning/versioning.go}.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json

VERSIONS: Final = ("v1", "v1beta1")
_GO_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


class BadReview(ValueError):
    """The answer is none; the text is upstream's."""


def no_object(found: Any) -> str:
    """What Go's decoder says of JSON that has no fields to find a type in."""
    into = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    what = f"cannot unmarshal {_GO_NAMES[type(found)]} into Go value of type {into}"
    return f"couldn't get version/kind; json parse error: json: {what}"


@dataclass(frozen=True, slots=True)
class ReviewKind:
    """One kind of review. `answer` is the Go type of its member `response`, `fields` are that one's members:
    dotted path -> Python's type, and Go's."""

    group: str
    kind: str
    answer: str
    fields: Mapping[str, tuple[type, str]]

    def version_of(self, accepted: list[str]) -> str:
        """The first version that both sides know, empty without one."""
        return next((version for version in accepted if version in VERSIONS), "")

    def decode(self, data: bytes, version: str) -> Object:
        """The body of a webhook's answer as a review of `version`. BadReview when it is something else."""
        try:
            found = json.decode(data)
        except json.DecodeError as error:
            if data.lstrip()[:1] in b"{[":
                raise BadReview(f"couldn't get version/kind; json parse error: {error}") from None
            found = data.decode("utf-8", "replace")  # what YAML would make of it
        if found is None:
            found = {}
        if not isinstance(found, dict):
            raise BadReview(no_object(found))
        expected = f"{self.group}/{version}"
        # What is missing is taken from what was expected.
        kind, api_version = found.get("kind") or self.kind, found.get("apiVersion") or expected
        if (kind, api_version) != (self.kind, expected):
            raise BadReview(self._other_kind(kind, api_version, version))
        self._check_types(found, version)
        return found

    def _other_kind(self, kind: str, api_version: str, version: str) -> str:
        known = (kind, api_version) == ("Status", "v1") or (
            kind == self.kind and api_version in [f"{self.group}/{known}" for known in VERSIONS]
        )
        if known:
            source = GroupVersion.parse(api_version).version
            return f"converting ({source}.{kind}) to ({version}.{self.kind}): unknown conversion"
        shown = f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)}"
        return f'{shown} in scheme "pkg/runtime/scheme.go:111"'

    def _check_types(self, found: Object, version: str) -> None:
        answer = found.get("response")
        if answer is not None and not isinstance(answer, dict):
            what = _GO_NAMES[type(answer)]
            field = f"Go struct field {self.kind}.response of type {version}.{self.answer}"
            raise BadReview(f"json: cannot unmarshal {what} into {field}")
        for path, (wanted, go_type) in self.fields.items():
            value: Any = answer
            for name in path.split("."):
                value = value.get(name) if isinstance(value, dict) else None
            if value is not None and type(value) is not wanted:
                what = _GO_NAMES[type(value)]
                struct = "Status" if "." in path else self.answer
                field = f"{struct}.response.{path}"
                raise BadReview(f"json: cannot unmarshal {what} into Go struct field {field} of type {go_type}")

    def check_kind(self, found: Object, version: str) -> None:
        """BadReview unless it says what it is, which v1 asks for."""
        kind, api_version = found.get("kind") or "", found.get("apiVersion") or ""
        if not (kind and api_version):
            wanted = f"{self.group}/{version}, Kind={self.kind}"
            raise BadReview(f"expected webhook response of {wanted}, got {api_version or '/'}, Kind={kind}")


def check_uid(uid: str, answer: Mapping[str, Any]) -> None:
    """BadReview for an answer to another question."""
    given = answer.get("uid") or ""
    if given != uid:
        raise BadReview(f"expected response.uid={go_quote(uid)}, got {go_quote(given)}")
