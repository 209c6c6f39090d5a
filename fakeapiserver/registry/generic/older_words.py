"""Errors of older Kubernetes versions in their own words. Words of a single kind are in its own file.

Upstream: the histories of k8s.io/apimachinery/pkg/util/validation, k8s.io/apimachinery/pkg/api/validate/content and sigs.k8s.io/json.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import OMIT, WITHOUT_VALUE, AsShown, Error, ErrorList, Reason, invalid, required
from fakeapiserver.apis.go_values import go_syntax
from fakeapiserver.apis.internal_form import in_version
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.apis.spec_difference import Difference


class _Words(NamedTuple):
    """`until` is the last version that has `older` in place of the text that the pattern finds."""

    until: str
    newest: re.Pattern[str]
    older: str


# Structs that Go embeds, which older decoders name in the path of a field.
_EMBEDDED: Final = (
    "DeviceConfiguration|EphemeralContainerCommon|IngressRuleValue|LocalObjectReference|PersistentVolumeSource"
    "|ProbeHandler|Rule|RuleWithOperations|VolumeSource"
)
_WORDS: Final = (
    _Words("v1.34", re.compile(r"(must be no more than \d+) bytes"), r"\1 characters"),
    _Words("v1.34", re.compile(r"pkg/runtime/scheme\.go:111"), "pkg/runtime/scheme.go:110"),
    _Words("v1.34", re.compile("a valid label key must"), "a qualified name must"),
    _Words(
        "v1.34",
        re.compile("a fully qualified name must be a domain and a name separated by a slash"),
        "must include a domain",
    ),
    _Words("v1.33", re.compile("^must be a valid JSON object"), "parameters must be a valid JSON object"),
    _Words("v1.33", re.compile("^must be a valid path"), "fieldPath must be a valid path"),
    _Words("v1.33", re.compile(r"(may not be more than 1 byte|must have at most 1 item)$"), r"\1s"),
    _Words("v1.35", re.compile("when pod `restartPolicy` is"), "when `restartPolicy` is"),
    _Words("v1.35", re.compile("is invalid: use"), "will be considered invalid in a future Kubernetes release: use"),
    _Words("v1.35", re.compile('(?<=supported values: "Restart"), "RestartAllContainers"$'), ""),
    _Words("v1.34", re.compile('(?<="Equal", "Exists"), "Lt", "Gt"$'), ""),
    _Words("v1.33", re.compile("^when `hostUsers` is"), "when `pod.Spec.HostUsers` is"),
    _Words("v1.33", re.compile(re.escape("_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?")), "[a-z0-9]([-a-z0-9]*[a-z0-9])?"),
    _Words("v1.34", re.compile(rf"(?<=\.)(?:{_EMBEDDED})\.(?=\S* of type )"), ""),
)


class _Said(NamedTuple):
    """An error of the newest version for which older ones report others.

    `until`: the last version that does; `field` finds the error's field; `older` makes the errors of that version."""

    until: str
    field: re.Pattern[str]
    older: Callable[[Error], ErrorList]
    reason: Reason = "FieldValueRequired"
    detail: str = ""


def _at_key(key: str, error: Error) -> ErrorList:
    return [replace(error, field=f"{error.field}.{key}")]


def _without_names(error: Error) -> Error:
    return replace(error, value={key: {} for key in error.value}) if isinstance(error.value, dict) else error


_NO_SUBDOMAIN: Final = names.is_dns1123_subdomain("")[0]
_NO_LABEL: Final = names.is_dns1123_label("")[0]
_SAID: Final = (
    # An absent name was validated as a name, too.
    _Said(
        "v1.34",
        re.compile(r"(?<!flexVolume)\.driver$|^spec\.drivers\[\d+\]\.name$"),
        lambda error: [error, invalid(error.field, "", _NO_SUBDOMAIN)],
    ),
    _Said(
        "v1.34",
        re.compile("^handler$"),
        lambda error: [invalid(error.field, "", _NO_LABEL)],
    ),
    _Said(
        "v1.33",
        re.compile(r"^status\.conditions\[\d+\]\.type$"),
        lambda error: [required(error.field, "must not be empty")],
    ),
    _Said(
        "v1.33",
        re.compile(r"\.os\.name$"),
        lambda error: [required(error.field, "cannot be empty")],
    ),
    _Said(
        "v1.33",
        re.compile(r"^spec\.versions\[\d+\]\.schema\.openAPIV3Schema$"),
        lambda error: [required(error.field, "schemas are required")],
    ),
    _Said(
        "v1.33",
        re.compile(r"\.ownerReferences\.(?:kind|name|uid)$"),
        lambda error: [replace(error, detail=f"{error.field.rpartition('.')[2]} must not be empty")],
        reason="FieldValueInvalid",
        detail="must not be empty",
    ),
    _Said(
        "v1.34",
        re.compile(r"\.attributes\[[^]]*\]$"),
        lambda error: [required(error.field, error.detail) if error.value == "" else error],
        reason="FieldValueInvalid",
        detail="exactly one value must be specified",
    ),
    # The names in a device's id weren't shown.
    _Said(
        "v1.34",
        re.compile(r"^status\.devices\["),
        lambda error: [_without_names(error)],
        reason="FieldValueInvalid",
        detail="must be an allocated device in the claim",
    ),
    _Said(
        "v1.34",
        re.compile(r"^status\.devices\[\d+\]$"),
        lambda error: _at_key("deviceID", _without_names(error)),
        reason="FieldValueDuplicate",
    ),
    # What is wrong with a key was reported at the key.
    _Said(
        "v1.35",
        re.compile(r"\.counters$"),
        lambda error: [replace(error, field=f"{error.field}[{error.value}]")],
        reason="FieldValueInvalid",
        detail=_NO_LABEL,
    ),
    # A duplicate was reported at its key.
    *(
        _Said("v1.34", re.compile(rf"{items}\[\d+\]$"), partial(_at_key, key), reason="FieldValueDuplicate")
        for items, key in (
            (r"(?:\.devices\.requests|\.firstAvailable|^spec\.devices|^spec\.sharedCounters)", "name"),
            (r"\.consumesCounters", "counterSet"),
            (r"^status\.reservedFor", "uid"),
        )
    ),
)
# The last version that reports an error at another field, the newest version's field, and the older one.
_PLACES: Final = (
    ("v1.35", re.compile(r"(?<=\.resourceClaimStatuses\[)(\d+\])\.resourceClaimName$"), r"\1.name"),
    ("v1.33", re.compile(r"^status\.allocatedResourceStatuses(?=\[|$)"), "status.allocatedResourceStatus"),
)
# The version that shows all values in Go's syntax.
_GO_SYNTAX: Final = "v1.33"
_NO_REVISION: Final = "must be specified for an update"

Reword = Callable[[str], str]


@cache
def reworded(version: str) -> Reword | None:
    """Rewords texts of the newest version as `version` words them; None if all are the same."""
    rows = [row for row in _WORDS if version <= row.until]
    if not rows:
        return None

    def reword(text: str) -> str:
        for row in rows:
            text = row.newest.sub(row.older, text)
        return text

    return reword


def reworded_errors(errors: ErrorList, version: str) -> ErrorList:
    """The errors of the newest version as `version` reports them."""
    if version == NEWEST:
        return errors
    reword = reworded(version)
    found = [said for error in errors for said in _otherwise(_with_difference(error, version), version)]
    if reword is not None:
        found = [replace(error, detail=reword(error.detail), field=_place(error.field, version)) for error in found]
    if version == _GO_SYNTAX:
        return [_in_go_syntax(error) for error in found]
    return [replace(error, value=in_version(error.value, version)) for error in found]


def _place(path: str, version: str) -> str:
    for until, newest, older in _PLACES:
        if version <= until:
            path = newest.sub(older, path)
    return path


def _otherwise(error: Error, version: str) -> ErrorList:
    rows = (row for row in _SAID if version <= row.until and (error.reason, error.detail) == (row.reason, row.detail))
    found = next((row for row in rows if row.field.search(error.field)), None)
    return [error] if found is None else found.older(error)


def _with_difference(error: Error, version: str) -> Error:
    detail = error.detail
    return replace(error, detail=detail.in_version(version)) if isinstance(detail, Difference) else error


def _in_go_syntax(error: Error) -> Error:
    if error.reason in WITHOUT_VALUE or error.value is OMIT:
        return error
    if error.detail == _NO_REVISION:
        return replace(error, value=AsShown("0x0"))
    shown = go_syntax(error.field, error.value, error.detail)
    return error if shown is None else replace(error, value=AsShown(shown))
