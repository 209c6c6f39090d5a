"""What servers of older Kubernetes versions say where the newest uses other words. What only one kind says is in its own file.

Upstream: the histories of k8s.io/apimachinery/pkg/util/validation, k8s.io/apimachinery/pkg/api/validate/content and sigs.k8s.io/json.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import Error, ErrorList, Reason, invalid, not_supported_text, required
from fakeapiserver.apis.recorded import NEWEST


class _Words(NamedTuple):
    """`until`: the last version that says `older` where the newest says what the pattern finds."""

    until: str
    newest: re.Pattern[str]
    older: str


_EMBEDDED: Final = "|".join(
    (
        *("DeviceConfiguration", "IngressRuleValue", "PersistentVolumeSource", "ProbeHandler"),
        *("Rule", "RuleWithOperations", "VolumeSource"),
    )
)
_WORDS: Final = (
    _Words("v1.34", re.compile(r"(must be no more than \d+) bytes"), r"\1 characters"),
    _Words("v1.34", re.compile("a valid label key must"), "a qualified name must"),
    _Words("v1.33", re.compile("^must be a valid JSON object"), "parameters must be a valid JSON object"),
    _Words("v1.33", re.compile("^must be a valid path"), "fieldPath must be a valid path"),
    _Words("v1.33", re.compile(r"(may not be more than 1 byte|must have at most 1 item)$"), r"\1s"),
    _Words("v1.35", re.compile("when pod `restartPolicy` is"), "when `restartPolicy` is"),
    # the names of embedded structs
    _Words("v1.34", re.compile(rf"(?<=\.)(?:{_EMBEDDED})\.(?=\S* of type )"), ""),
)


class _Said(NamedTuple):
    """`until`: the last version that says something else where the newest refuses a field that the pattern finds, for this
    reason, with this detail."""

    until: str
    field: re.Pattern[str]
    reason: Reason
    detail: str
    otherwise: Callable[[Error], ErrorList]


_NO_SUBDOMAIN: Final = names.is_dns1123_subdomain("")[0]
_RESPONSES: Final = ("Queue", "Reject")
_SAID: Final = (
    # a name that isn't there is no good name either
    _Said(
        *("v1.34", re.compile(r"(?<!flexVolume)\.driver$"), "FieldValueRequired", ""),
        lambda error: [error, invalid(error.field, "", _NO_SUBDOMAIN)],
    ),
    _Said(
        *("v1.35", re.compile(r"^spec\.limited\.limitResponse\.type$"), "FieldValueRequired", ""),
        lambda error: [not_supported_text(error.field, "", _RESPONSES)],
    ),
    _Said(
        *("v1.34", re.compile(r"\.attributes\[[^]]*\]$"), "FieldValueInvalid", "exactly one value must be specified"),
        lambda error: [required(error.field, error.detail) if error.value == "" else error],
    ),
)
_NO_REVISION: Final = "must be specified for an update"

Reword = Callable[[str], str]


@cache
def reworded(version: str) -> Reword | None:
    """Newest words -> those of a version; None if it has no others."""
    rows = [row for row in _WORDS if version <= row.until]
    if not rows:
        return None

    def reword(text: str) -> str:
        for row in rows:
            text = row.newest.sub(row.older, text)
        return text

    return reword


def reworded_errors(errors: ErrorList, version: str) -> ErrorList:
    """As a version tells them."""
    if version == NEWEST:
        return errors
    reword = reworded(version)
    found = [said for error in errors for said in _otherwise(error, version)]
    if reword is not None:
        found = [replace(error, detail=reword(error.detail)) for error in found]
    return [in_go_syntax(error) for error in found] if version == "v1.33" else found


def _otherwise(error: Error, version: str) -> ErrorList:
    rows = (row for row in _SAID if version <= row.until and (error.reason, error.detail) == (row.reason, row.detail))
    found = next((row for row in rows if row.field.search(error.field)), None)
    return [error] if found is None else found.otherwise(error)


def in_go_syntax(error: Error) -> Error:
    """1.33 shows values as Go does; of those only what can be told without Go's types is done here."""
    if error.value is None and error.reason == "FieldValueInvalid":
        return replace(error, value="null")
    if error.detail == _NO_REVISION:
        return replace(error, value=Raw(b"0x0"))
    return error
