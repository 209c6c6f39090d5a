"""The differences between the Scales of built-in and custom resources.

Upstream: pkg/registry/apps/deployment/storage/storage.go (ScaleREST), apiextensions-apiserver/pkg/registry/customresource/etcd.go.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.errors import (
    StatusError,
    new_bad_request,
    new_conflict,
    new_internal_error,
    new_invalid,
    status_error,
)
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.custom_resources import AGE_COLUMN, NAME_COLUMN
from fakeapiserver.endpoints.negotiation.refusals import CannotBeHandled
from fakeapiserver.endpoints.scope import RequestScope, ScalePaths
from fakeapiserver.registry.apiextensions.customresource import nested
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.generic.write_request import Transform

Column = Mapping[str, Any]
_SHOWN: Final = "autoscaling/v1, Kind=Scale"
_COLUMNS: Final = tuple(
    {"name": name, "type": kind, "format": "", "priority": 0}
    for name, kind in (("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "string"))
)
# What upstream shows a patch of a custom resource that has no replicas: the smallest int32.
_UNSET: Final = -(2**31)
_OLD_VERSIONS: Final = {"apps": ("v1beta1", "v1beta2", "v1")}


class ScaleRules(Protocol):
    columns: tuple[Column, ...]

    def row(self, obj: Object, now: float) -> list[object]:
        """Returns the cells of a Scale's Table."""

    def check_readable(self, obj: Object, paths: ScalePaths) -> None:
        """Raises StatusError 500 if the object has no replicas to be read."""

    def check_types(self, obj: Object, paths: ScalePaths) -> None:
        """Raises StatusError 500 for fields of other types, which a conversion may leave."""

    def refusal(self, error: StatusError) -> StatusError:
        """Returns the refusal of a PUT that can't be decoded."""

    def applied(self, change: Transform, name: str) -> Transform:
        """Returns an apply to the Scale as upstream carries it out."""

    def before(self, scale: Object, obj: Object, paths: ScalePaths) -> None:
        """Completes the Scale that a change starts from, in place."""

    def check(self, after: Object, current: Object, scope: RequestScope) -> None:
        """Checks a new Scale as upstream's storages do. Raises StatusError 400, 409 or 422."""

    def settle(self, changed: Object, current: Object, scope: RequestScope) -> None:
        """Completes the scaled object, in place."""

    def replicas_paths(self, scope: RequestScope) -> Mapping[str, tuple[str, ...] | None]:
        """Returns the path of the replicas for each version that may have written the object."""


class BuiltinScale:
    columns: tuple[Column, ...] = _COLUMNS

    def row(self, obj: Object, now: float) -> list[object]:
        desired, available = ((obj.get(part) or {}).get("replicas", 0) for part in ("spec", "status"))
        return [metadata(obj).get("name", ""), desired, available, age(obj, now)]

    def check_readable(self, obj: Object, paths: ScalePaths) -> None: ...

    def check_types(self, obj: Object, paths: ScalePaths) -> None: ...

    def refusal(self, error: StatusError) -> StatusError:
        return error

    def applied(self, change: Transform, name: str) -> Transform:
        return change

    def before(self, scale: Object, obj: Object, paths: ScalePaths) -> None: ...

    def check(self, after: Object, current: Object, scope: RequestScope) -> None:
        meta, name = metadata(after), metadata(current).get("name", "")
        replicas = (after.get("spec") or {}).get("replicas", 0)
        errors = names.validate_object_meta(meta, True, names.name_is_dns_subdomain, field.Path("metadata"))
        if replicas < 0:
            errors.append(field.invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
        if errors:
            raise new_invalid(GroupKind("autoscaling", "Scale"), name, errors)
        if meta.get("uid") and meta["uid"] != metadata(current).get("uid"):
            raise _other_object(meta["uid"], current, scope)

    def settle(self, changed: Object, current: Object, scope: RequestScope) -> None: ...

    def replicas_paths(self, scope: RequestScope) -> Mapping[str, tuple[str, ...] | None]:
        group, path = scope.gvk.group, tuple("f:" + part for part in scope.scale_paths.spec_replicas.split("."))
        versions = _OLD_VERSIONS.get(group, (scope.gvk.version,))
        return {f"{group}/{version}" if group else version: path for version in versions}


class CustomScale:
    columns: tuple[Column, ...] = (NAME_COLUMN, *_COLUMNS[1:3], AGE_COLUMN)

    def row(self, obj: Object, now: float) -> list[object]:
        """Upstream prints by paths: the spec has no zero."""
        name, desired, *rest = BUILTIN.row(obj, now)
        return [name, desired or None, *rest]

    def check_readable(self, obj: Object, paths: ScalePaths) -> None:
        if value_at(obj, paths.spec_replicas) is None:
            path = go_quote(f".{paths.spec_replicas}")
            raise new_internal_error(f"the spec replicas field {path} does not exist")

    def check_types(self, obj: Object, paths: ScalePaths) -> None:
        try:
            nested(obj, paths.spec_replicas, int)
            nested(obj, paths.status_replicas, int)
            if paths.selector:
                nested(obj, paths.selector, str)
        except ValueError as error:
            raise status_error(500, "", str(error)) from None

    def refusal(self, error: StatusError) -> StatusError:
        """Returns the error of a Scale that can't be decoded. Upstream can't report such an error, since the scheme of custom resources has
        no Scale.
        """
        if isinstance(error, CannotBeHandled):
            return new_bad_request('no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"')
        return error

    def applied(self, change: Transform, name: str) -> Transform:
        """Upstream's converter of custom resources has no Scale, so applying one fails as soon as something would change."""

        def transform(before: Object | None) -> Object:
            assert before is not None  # scaling never creates
            why = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
            if not metadata(before).get("managedFields"):
                live = f"failed to convert live object (/; {_SHOWN}) {why}"
                raise status_error(500, "", f"failed to create manager for existing fields: {live}")
            after = change(before)
            if after.get("spec") != before.get("spec"):
                raise status_error(500, "", f"failed to convert new object (/{name}; {_SHOWN}) {why}")
            return after

        return transform

    def before(self, scale: Object, obj: Object, paths: ScalePaths) -> None:
        if value_at(obj, paths.spec_replicas) is None:
            scale["spec"] = {"replicas": _UNSET}

    def check(self, after: Object, current: Object, scope: RequestScope) -> None:
        if (after.get("spec") or {}).get("replicas", 0) == _UNSET:
            path = go_quote(f".{scope.scale_paths.spec_replicas}")
            raise new_bad_request(f"the spec replicas field {path} cannot be empty")

    def settle(self, changed: Object, current: Object, scope: RequestScope) -> None:
        """A missing spec gets its defaults when it is read."""
        if value_at(current, scope.scale_paths.spec_replicas.rpartition(".")[0]) is None:
            scope.kind.default(changed)

    def replicas_paths(self, scope: RequestScope) -> Mapping[str, tuple[str, ...] | None]:
        return scope.replicas_paths


def value_at(obj: Object, path: str) -> Any:
    """Returns the value at a dotted path, or None."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _other_object(uid: str, current: Object, scope: RequestScope) -> StatusError:
    resource = GroupResource(scope.gvk.group, f"{scope.resource.gvr.resource}/scale")
    own = metadata(current).get("uid", "")
    reason = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {own}"
    return new_conflict(resource, metadata(current).get("name", ""), reason)


BUILTIN: Final = BuiltinScale()
CUSTOM: Final = CustomScale()
