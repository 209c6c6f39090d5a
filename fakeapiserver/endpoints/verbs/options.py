"""The options of a request, from its query (and for deletes its body), checked as upstream checks them.

Upstream: k8s.io/apimachinery/pkg/apis/meta/{v1/types.go,v1/validation/validation.go,internalversion/validation}.
"""

from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import field, fields, labels
from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_invalid
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.endpoints.request import Query

_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")
_MAX_FIELD_MANAGER: Final = 128


class WriteOptions(Struct):
    """CreateOptions, UpdateOptions and PatchOptions in one."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None


IGNORE_READ_ERRORS: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"


class DeleteOptions(Struct):
    """`propagation_policy` and `orphan_dependents` are None if they aren't given."""

    dry_run: bool = False
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    ignore_read_errors: bool = False  # ignoreStoreReadErrorWithClusterBreakingPotential


class ListOptions(Struct):
    """Selectors are None if they select everything."""

    label_selector: labels.Selector | None = None
    field_selector: fields.Selector | None = None
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    continue_: str = ""
    send_initial_events: bool | None = None
    shard_selector: str = ""  # as it was sent: it counts where its gate is on (selection.shard)


def boolean(query: Query, name: str) -> bool:
    """Go's query conversion: present and anything but `false` or `0` is true (upstream: Convert_Slice_string_To_bool)."""
    values = query.get(name) or ["false"]
    return values[0].lower() not in ("false", "0")


def _optional_boolean(query: Query, name: str) -> bool | None:
    return boolean(query, name) if query.get(name) else None


def _integer(query: Query, name: str) -> int | None:
    values = query.get(name)
    if not values:
        return None
    try:
        return parse_int(values[0])
    except ValueError as error:
        raise new_bad_request(str(error)) from None


def _first(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def _invalid(kind: str, errors: ErrorList) -> StatusError:
    return new_invalid(GroupKind("meta.k8s.io", kind), "", errors)


def _dry_run_errors(values: list[str]) -> ErrorList:
    if any(value != "All" for value in values):
        return [field.not_supported_text("dryRun", values, ["All"])]
    return []


def _field_manager_errors(manager: str) -> ErrorList:
    errors: ErrorList = []
    if len(manager.encode()) > _MAX_FIELD_MANAGER:
        errors.append(field.too_long("fieldManager", _MAX_FIELD_MANAGER))
    for i, character in enumerate(manager):
        if not character.isprintable():
            at = len(manager[:i].encode())
            detail = f"invalid character U+{ord(character):04X} (at position {at})"
            errors.append(field.invalid("fieldManager", manager, detail))
    return errors


def write_options(query: Query, kind: str, *, apply: bool = False) -> WriteOptions:
    """`kind` is CreateOptions, UpdateOptions or PatchOptions; `apply` for server-side apply. StatusError 422."""
    if not query:
        if apply:
            raise _invalid(kind, [_manager_required()])
        return WriteOptions()
    manager = _first(query, "fieldManager")
    dry_run = query.get("dryRun", [])
    validation = _first(query, "fieldValidation")
    force = _optional_boolean(query, "force") if kind == "PatchOptions" else None
    errors: ErrorList = []
    if kind == "PatchOptions":
        if apply and not manager:
            errors.append(_manager_required())
        if not apply and force is not None:
            errors.append(field.forbidden("force", "may not be specified for non-apply patch"))
    errors += _field_manager_errors(manager)
    errors += _dry_run_errors(dry_run)
    if validation not in _FIELD_VALIDATION:
        errors.append(field.not_supported_text("fieldValidation", validation, _FIELD_VALIDATION))
    if errors:
        raise _invalid(kind, errors)
    return WriteOptions(bool(dry_run), manager, validation or "Warn", force)


def _manager_required() -> field.Error:
    return field.required("fieldManager", "is required for apply patch")


def delete_options(query: Query, body: Object | None) -> DeleteOptions:
    """From the body when there is one (the query is then ignored, as upstream does), else from the query. StatusError 422."""
    options, refusal = judged_delete_options(query, body)
    if refusal is not None:
        raise refusal
    return options


def judged_delete_options(query: Query, body: Object | None) -> tuple[DeleteOptions, StatusError | None]:
    """Does what `delete_options` does, but returns the refusal, for callers that raise it later."""
    options = _delete_options_of_body(body) if body is not None else _delete_options_of_query(query)
    dry_run = options.pop("dry_run_values")
    result = DeleteOptions(dry_run=bool(dry_run), **options)
    errors: ErrorList = []
    if result.propagation_policy is not None:
        if result.orphan_dependents is not None:
            detail = "orphanDependents and deletionPropagation cannot be both set"
            errors.append(field.invalid("propagationPolicy", result.propagation_policy, detail))
        elif result.propagation_policy not in ("Foreground", "Background", "Orphan"):
            # Upstream shows these in its own order, not sorted.
            known = ("Foreground", "Background", "Orphan", "nil")
            errors.append(field.not_supported_text("propagationPolicy", result.propagation_policy, known))
    errors += _dry_run_errors(dry_run)
    return result, _invalid("DeleteOptions", errors) if errors else None


def unsafe_deletion_errors(options: DeleteOptions, *, takes_dry_run: bool) -> ErrorList:
    """The errors for options that contradict ignoreStoreReadErrorWithClusterBreakingPotential (ValidateIgnoreStoreReadError)."""
    given = {
        ".dryRun": None if takes_dry_run else options.dry_run or None,
        ".propagationPolicy": options.propagation_policy,
        ".orphanDependents": options.orphan_dependents,
        ".gracePeriodSeconds": options.grace_period_seconds,
        ".preconditions": options.uid or options.resource_version,
    }
    return [
        field.invalid(IGNORE_READ_ERRORS, True, f"cannot be set together with {name}")
        for name, value in given.items()
        if value is not None
    ]


def _delete_options_of_query(query: Query) -> dict[str, Any]:
    return {
        "dry_run_values": query.get("dryRun", []),
        "grace_period_seconds": _integer(query, "gracePeriodSeconds"),
        "propagation_policy": query.get("propagationPolicy", [None])[0],
        "orphan_dependents": _optional_boolean(query, "orphanDependents"),
        "uid": _first(query, "uid") or None,
        "resource_version": _first(query, "resourceVersion") or None,
        "ignore_read_errors": boolean(query, IGNORE_READ_ERRORS),
    }


def _delete_options_of_body(body: Object) -> dict[str, Any]:
    preconditions = body.get("preconditions") or {}
    return {
        "dry_run_values": list(body.get("dryRun") or ()),
        "grace_period_seconds": body.get("gracePeriodSeconds"),
        "propagation_policy": body.get("propagationPolicy"),
        "orphan_dependents": body.get("orphanDependents"),
        "uid": preconditions.get("uid"),
        "resource_version": preconditions.get("resourceVersion"),
        "ignore_read_errors": bool(body.get(IGNORE_READ_ERRORS)),
    }


def list_options(query: Query, *, watch: bool = False, watch_list: bool = True) -> ListOptions:
    """Reads the options of a list or watch.

    `watch`: the path always watches, and its options are checked as a list's; `watch_list`: whether watches may
    begin with the present state
    (WatchList). Raises StatusError 400 for invalid numbers, 422 for combinations that upstream forbids.
    """
    if not query:
        return ListOptions(watch=watch)
    options = ListOptions(
        watch=boolean(query, "watch"),
        allow_watch_bookmarks=boolean(query, "allowWatchBookmarks"),
        resource_version=_first(query, "resourceVersion"),
        resource_version_match=_first(query, "resourceVersionMatch"),
        timeout_seconds=_integer(query, "timeoutSeconds"),
        limit=_integer(query, "limit") or 0,
        continue_=_first(query, "continue"),
        send_initial_events=_optional_boolean(query, "sendInitialEvents"),
        shard_selector=_first(query, "shardSelector"),
    )
    options.label_selector = _label_selector(_first(query, "labelSelector"))
    options.field_selector = field_selector(_first(query, "fieldSelector"))
    if watch_list:
        _set_list_options_defaults(options)
    errors = _watch_errors(options, watch_list) if options.watch else _list_errors(options)
    if errors:
        raise _invalid("ListOptions", errors)
    options.watch = options.watch or watch
    return options


_parse_labels = lru_cache(maxsize=512)(labels.parse)
_parse_fields = lru_cache(maxsize=512)(fields.parse)


def _label_selector(text: str) -> labels.Selector | None:
    if not text:
        return None
    try:
        selector = _parse_labels(text)
    except ValueError as error:
        raise new_bad_request(str(error)) from None
    return None if selector.empty else selector


def field_selector(text: str) -> fields.Selector | None:
    """The parsed field selector. StatusError 400."""
    if not text:
        return None
    try:
        selector = _parse_fields(text)
    except ValueError as error:
        raise new_bad_request(str(error)) from None
    return None if selector.empty else selector


def _set_list_options_defaults(options: ListOptions) -> None:
    """A watch without a resourceVersion begins with the existing objects."""
    if options.send_initial_events is not None or options.resource_version_match:
        return
    if options.watch and options.resource_version in ("", "0"):
        options.send_initial_events, options.resource_version_match = True, "NotOlderThan"


def _list_errors(options: ListOptions) -> ErrorList:
    match, revision = options.resource_version_match, options.resource_version
    path = Path("resourceVersionMatch")
    errors: ErrorList = []
    if match:
        if not revision:
            errors.append(field.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_:
            errors.append(field.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(field.not_supported_text(path, match, ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and revision == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(field.forbidden(path, detail))
    if options.send_initial_events is not None:
        errors.append(field.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions, watch_list: bool) -> ErrorList:
    match, initial_events = options.resource_version_match, options.send_initial_events
    path = Path("resourceVersionMatch")
    errors: ErrorList = []
    if initial_events is not None and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(field.forbidden(path, detail))
    if initial_events is not None and not watch_list:
        detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        errors.append(field.forbidden("sendInitialEvents", detail))
    if match:
        if initial_events is None:
            detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(field.forbidden(path, detail))
        if match != "NotOlderThan":
            errors.append(field.not_supported_text(path, match, ["NotOlderThan"]))
        if options.continue_:
            errors.append(field.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    return errors
