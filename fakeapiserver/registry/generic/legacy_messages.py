"""The messages of older Kubernetes versions: by a message's rule, or by the field and reason of an error.

Wordings of a single kind are in its own file.

Upstream: the histories of k8s.io/apimachinery/pkg/util/validation, k8s.io/apimachinery/pkg/api/validate/content and sigs.k8s.io/json.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import (
    OMIT,
    WITHOUT_VALUE,
    AsShown,
    Error,
    ErrorList,
    Reason,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fakeapiserver.apimachinery.message import Message, Piece
from fakeapiserver.apis.go_values import go_syntax
from fakeapiserver.apis.internal_form import in_version
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.apis.spec_difference import Difference
from fakeapiserver.registry.generic.conditions import STATUSES


class _Wording(NamedTuple):
    """A rule's message in versions up to `until`: a template that the message's arguments fill in."""

    until: str
    template: str


_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    "and must start and end with an alphanumeric character"
)
# The rule of a Message -> its older wording.
_WORDINGS: Final[Mapping[str, _Wording]] = {
    "domain.required": _Wording("v1.34", "must include a domain"),
    "fieldPath": _Wording("v1.33", "fieldPath must be a valid path"),
    "hostUsers.false": _Wording("v1.33", "when `pod.Spec.HostUsers` is false"),
    "ip.non-standard": _Wording("v1.35", "will be considered invalid in a future Kubernetes release: use {}"),
    "max-1-byte": _Wording("v1.33", "may not be more than 1 bytes"),
    "max-1-item": _Wording("v1.33", "must have at most 1 items"),
    "max-bytes": _Wording("v1.34", "must be no more than {} characters"),
    "parameters.object": _Wording("v1.33", "parameters must be a valid JSON object"),
    "qualified-name": _Wording("v1.34", "a qualified name"),
    "resources.claim": _Wording(
        "v1.36",
        "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
        "'claim:<claimName>' if request is empty",
    ),
    "resizePolicy.never": _Wording("v1.35", "must be 'NotRequired' when `restartPolicy` is 'Never'"),
    "restartPolicyRules.action": _Wording("v1.35", 'supported values: "Restart"'),
    "roleRef.immutable": _Wording("v1.36", "cannot change roleRef"),
    "subdomain.underscore": _Wording(
        "v1.33", names.regex_error(_SUBDOMAIN_RULE, rf"{_LABEL}(\.{_LABEL})*", "example.com")
    ),
    "toleration.operator": _Wording("v1.34", 'supported values: "Equal", "Exists"'),
}

# Structs that Go embeds, which the decoder of these versions leaves out of the path of a field.
_EMBEDDED_UNTIL: Final = "v1.34"
_EMBEDDED: Final = re.compile(
    r"(?<=\.)(?:DeviceConfiguration|EphemeralContainerCommon|IngressRuleValue|LocalObjectReference|PersistentVolumeSource"
    r"|ProbeHandler|Rule|RuleWithOperations|VolumeSource)\.(?=\S* of type )"
)
# The line of Go's source that errors about unknown types name.
_SCHEME_LINE: Final = ("pkg/runtime/scheme.go:111", "pkg/runtime/scheme.go:110")


class _FormerError(NamedTuple):
    """An error of the newest version for which older ones report others.

    `until`: the last version that does; `field` finds the error's field; `older` makes the errors of that version. `rule`: the rule of
    the error's Message, where others have the same text."""

    until: str
    field: re.Pattern[str]
    older: Callable[[Error], ErrorList]
    reason: Reason = "FieldValueRequired"
    detail: str = ""
    rule: str = ""

    def replaces(self, error: Error) -> bool:
        """Reports whether older versions report other errors instead of this one."""
        same = (error.reason, error.detail) == (self.reason, self.detail) and self.field.search(error.field) is not None
        return same and self.rule in ("", *_rules_of(error.detail))


def _at_key(key: str, error: Error) -> ErrorList:
    return [replace(error, field=f"{error.field}.{key}")]


def _at_attributes(error: Error) -> ErrorList:
    """Older servers name the attributes that are missing or too many."""
    if error.value is None:
        return _at_key("resourceAttributes", error)
    detail = "cannot be specified in combination with resourceAttributes"
    return [replace(former, detail=detail) for former in _at_key("nonResourceAttributes", error)]


def _without_names(error: Error) -> Error:
    return replace(error, value={key: {} for key in error.value}) if isinstance(error.value, dict) else error


ONE_OF_ATTRIBUTES: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_FIXED_PROVIDER: Final = 'node updates may not change providerID except from "" to valid'
_NO_SUBDOMAIN: Final = names.is_dns1123_subdomain("")[0]
_NO_LABEL: Final = names.is_dns1123_label("")[0]
_FORMER_ERRORS: Final = (
    # An absent name was validated as a name, too.
    _FormerError(
        "v1.34",
        re.compile(r"(?<!flexVolume)\.driver$|^spec\.drivers\[\d+\]\.name$"),
        lambda error: [error, invalid(error.field, "", _NO_SUBDOMAIN)],
    ),
    _FormerError(
        "v1.34",
        re.compile("^handler$"),
        lambda error: [invalid(error.field, "", _NO_LABEL)],
    ),
    _FormerError(
        "v1.33",
        re.compile(r"^status\.conditions\[\d+\]\.type$"),
        lambda error: [required(error.field, "must not be empty")],
    ),
    _FormerError(
        "v1.33",
        re.compile(r"\.os\.name$"),
        lambda error: [required(error.field, "cannot be empty")],
    ),
    _FormerError(
        "v1.33",
        re.compile(r"^spec\.versions\[\d+\]\.schema\.openAPIV3Schema$"),
        lambda error: [required(error.field, "schemas are required")],
    ),
    _FormerError(
        "v1.33",
        re.compile(r"\.ownerReferences\[\d+\]\.(?:kind|name|uid)$"),
        lambda error: [invalid(error.field, "", f"{error.field.rpartition('.')[2]} must not be empty")],
        detail="must not be empty",
    ),
    _FormerError(
        "v1.36",
        re.compile(r"\.ownerReferences\[\d+\]\.(?:kind|name|uid)$"),
        lambda error: [invalid(error.field, "", "must not be empty")],
        detail="must not be empty",
    ),
    _FormerError(
        "v1.36",
        re.compile(r"\.ownerReferences\[\d+\]\.apiVersion$"),
        lambda error: [invalid(error.field, "", "version must not be empty")],
        detail="must not be empty",
    ),
    _FormerError(
        "v1.36",
        re.compile(r"\.ownerReferences\[\d+\]\.apiVersion$"),
        lambda error: [replace(error, detail="version must not be empty")],
        reason="FieldValueInvalid",
        detail=names.NO_OWNER_VERSION,
    ),
    _FormerError(
        "v1.34",
        re.compile(r"\.attributes\[[^]]*\]$"),
        lambda error: [required(error.field, error.detail) if error.value == "" else error],
        reason="FieldValueInvalid",
        detail="exactly one value must be specified",
    ),
    *(
        _FormerError(
            "v1.36",
            re.compile(r"^spec\.providerID$"),
            lambda error: [forbidden(error.field, _FIXED_PROVIDER)],
            reason="FieldValueInvalid",
            detail=f"field cannot be {change} once set",
        )
        for change in ("modified", "cleared")
    ),
    _FormerError("v1.36", re.compile("^spec$"), _at_attributes, reason="FieldValueInvalid", detail=ONE_OF_ATTRIBUTES),
    # An empty type or status of a condition was an invalid one, and a repeated type was reported at the type.
    _FormerError(
        "v1.36",
        re.compile(r"\bconditions\[\d+\]\.type$"),
        lambda error: [invalid(error.field, "", problem) for problem in names.is_qualified_name("")],
        rule="condition.type",
        detail="is required",
    ),
    _FormerError(
        "v1.36",
        re.compile(r"\bconditions\[\d+\]\.status$"),
        lambda error: [not_supported(error.field, "", STATUSES)],
        rule="condition.status",
    ),
    _FormerError("v1.36", re.compile(r"\bconditions\[\d+\]$"), partial(_at_key, "type"), reason="FieldValueDuplicate"),
    # The names in a device's id weren't shown.
    _FormerError(
        "v1.34",
        re.compile(r"^status\.devices\["),
        lambda error: [_without_names(error)],
        reason="FieldValueInvalid",
        detail="must be an allocated device in the claim",
    ),
    _FormerError(
        "v1.34",
        re.compile(r"^status\.devices\[\d+\]$"),
        lambda error: _at_key("deviceID", _without_names(error)),
        reason="FieldValueDuplicate",
    ),
    # What is wrong with a key was reported at the key.
    _FormerError(
        "v1.35",
        re.compile(r"\.counters$"),
        lambda error: [replace(error, field=f"{error.field}[{error.value}]")],
        reason="FieldValueInvalid",
        detail=_NO_LABEL,
    ),
    # A duplicate was reported at its key.
    *(
        _FormerError("v1.34", re.compile(rf"{items}\[\d+\]$"), partial(_at_key, key), reason="FieldValueDuplicate")
        for items, key in (
            (r"(?:\.devices\.requests|\.firstAvailable|^spec\.devices|^spec\.sharedCounters)", "name"),
            (r"\.consumesCounters", "counterSet"),
            (r"^status\.reservedFor", "uid"),
        )
    ),
)
# The last version that reports an error at another field, the newest version's field, and the older one.
_FORMER_FIELDS: Final = (
    ("v1.36", re.compile(r"(?<=\.ownerReferences)\[\d+\]"), ""),
    ("v1.35", re.compile(r"(?<=\.resourceClaimStatuses\[)(\d+\])\.resourceClaimName$"), r"\1.name"),
    ("v1.33", re.compile(r"^status\.allocatedResourceStatuses(?=\[|$)"), "status.allocatedResourceStatus"),
)
# The newest version that words anything differently.
_LAST_REWORDED: Final = max(
    *(wording.until for wording in _WORDINGS.values()),
    *(row.until for row in _FORMER_ERRORS),
    *(row[0] for row in _FORMER_FIELDS),
)
# The version that shows all values in Go's syntax.
_GO_SYNTAX: Final = "v1.33"
_NO_REVISION: Final = "must be specified for an update"

Reword = Callable[[str], str]


@cache
def decoding_errors_of(version: str) -> Reword | None:
    """Returns a function that words decoding errors as `version` does, or None if it words them as the newest version."""
    if version > _EMBEDDED_UNTIL:
        return None
    return lambda text: _EMBEDDED.sub("", text).replace(*_SCHEME_LINE)


def worded(text: str, version: str) -> str:
    """The text as `version` words it."""
    if not isinstance(text, Message):
        return text
    return "".join(_worded_piece(piece, version) for piece in text.pieces)


def _rules_of(text: str) -> tuple[str, ...]:
    return tuple(piece.rule for piece in text.pieces) if isinstance(text, Message) else ()


def _worded_piece(piece: Piece, version: str) -> str:
    wording = _WORDINGS.get(piece.rule)
    if wording is None or version > wording.until:
        return piece.text
    return wording.template.format(*piece.arguments)


def reworded_errors(errors: ErrorList, version: str) -> ErrorList:
    """The errors of the newest version as `version` reports them."""
    if version == NEWEST > _LAST_REWORDED:
        return errors
    reported = [
        replace(former, detail=worded(former.detail, version), field=_former_field(former.field, version))
        for error in errors
        for former in _former_errors(_with_difference(error, version), version)
    ]
    if version == _GO_SYNTAX:
        return [_in_go_syntax(error) for error in reported]
    return [replace(error, value=in_version(error.value, version)) for error in reported]


def _former_field(path: str, version: str) -> str:
    for until, newest, older in _FORMER_FIELDS:
        if version <= until:
            path = newest.sub(older, path)
    return path


def _former_errors(error: Error, version: str) -> ErrorList:
    row = next((row for row in _FORMER_ERRORS if version <= row.until and row.replaces(error)), None)
    return [error] if row is None else row.older(error)


def _with_difference(error: Error, version: str) -> Error:
    detail = error.detail
    return replace(error, detail=detail.in_version(version)) if isinstance(detail, Difference) else error


def _in_go_syntax(error: Error) -> Error:
    if error.reason in WITHOUT_VALUE or error.value is OMIT:
        return error
    if error.detail == _NO_REVISION:
        return replace(error, value=AsShown("0x0"))
    value = go_syntax(error.field, error.value, error.detail)
    return error if value is None else replace(error, value=AsShown(value))
