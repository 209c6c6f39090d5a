"""Validation of a container's environment variables and their sources.

Upstream: pkg/apis/core/validation/validation.go (ValidateEnv, ValidateEnvFrom, validateFileKeyRefVolumes).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.data_keys import is_config_map_key
from fakeapiserver.registry.core.field_formats import (
    is_environment_variable_name,
    name_errors,
    no_backsteps_errors,
    required_label_errors,
)
from fakeapiserver.registry.core.pod.downward_api_validation import field_ref_errors, resource_ref_errors
from fakeapiserver.registry.core.pod.options import PodOptions

_FIELDS: Final = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_NO_SOURCE: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)
_NO_SOURCE_BUT_FILES: Final = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
_SEVERAL: Final = "may not have more than one field specified at a time"
_NAMED: Final = ("configMapRef", "secretRef")


def env_errors(variables: Sequence[Object], path: Path, options: PodOptions) -> ErrorList:
    errors: ErrorList = []
    for i, variable in enumerate(variables):
        at, name = path.index(i), variable.get("name", "")
        if not name:
            errors.append(field.required(at.child("name")))
        else:
            errors += name_errors(name, is_environment_variable_name, at.child("name"))
        if (source := variable.get("valueFrom")) is not None:
            errors += _source_errors(source, variable.get("value", ""), at.child("valueFrom"), options)
    return errors


def _source_errors(source: Object, value: str, path: Path, options: PodOptions) -> ErrorList:
    given = [kind for kind in _SOURCES if kind in source]
    errors = [error for kind in given for error in _SOURCES[kind](source[kind], path.child(kind))]
    if not given:
        errors.append(field.invalid(path, "", _NO_SOURCE if options.env_files else _NO_SOURCE_BUT_FILES))
    elif value:
        errors.append(field.invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errors.append(field.invalid(path, "", _SEVERAL))
    return errors


def _key_errors(source: Object, path: Path) -> ErrorList:
    errors = name_errors(source.get("name", ""), names.is_dns1123_subdomain, path.child("name"))
    if not (key := source.get("key")):
        return [*errors, field.required(path.child("key"))]
    return errors + name_errors(key, is_config_map_key, path.child("key"))


def _file_key_errors(source: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    if key := source.get("key"):
        errors += name_errors(key, is_environment_variable_name, path.child("key"))
    else:
        errors.append(field.required(path.child("key")))
    errors += required_label_errors(source.get("volumeName", ""), path.child("volumeName"))
    if not (file_path := source.get("path")):
        return [*errors, field.required(path.child("path"))]
    return errors + no_backsteps_errors(file_path, path.child("path"))


_SOURCES: Final[Mapping[str, Callable[[Object, Path], ErrorList]]] = {
    "fieldRef": lambda source, path: field_ref_errors(source, _FIELDS, path),
    "resourceFieldRef": lambda source, path: resource_ref_errors(source, path, in_volume=False),
    "configMapKeyRef": _key_errors,
    "secretKeyRef": _key_errors,
    "fileKeyRef": _file_key_errors,
}


def env_from_errors(sources: Sequence[Object], path: Path) -> ErrorList:
    """The errors in envFrom. Those in the number of its sources are reported at the list itself."""
    errors: ErrorList = []
    for i, source in enumerate(sources):
        at = path.index(i)
        if prefix := source.get("prefix"):
            errors += name_errors(prefix, is_environment_variable_name, at.child("prefix"))
        given = [kind for kind in _NAMED if kind in source]
        for kind in given:
            name, name_path = source[kind].get("name", ""), at.child(kind, "name")
            # Upstream looks at these as at prefixes of generated names, which may end with a hyphen.
            problems = names.name_is_dns_subdomain(name, True)
            errors += (
                [field.invalid(name_path, name, problem) for problem in problems]
                if name
                else [field.required(name_path)]
            )
        if not given:
            errors.append(field.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(field.invalid(path, "", _SEVERAL))
    return errors


def file_key_volume_errors(spec: Object, path: Path) -> ErrorList:
    """The errors for files of variables that aren't in one of the pod's emptyDir volumes."""
    errors: ErrorList = []
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(spec.get(kind) or ()):
            for j, variable in enumerate(container.get("env") or ()):
                source = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if source is None:
                    continue
                name = source.get("volumeName", "")
                volumes = {volume.get("name", ""): volume for volume in spec.get("volumes") or ()}
                at = path.child(kind).index(i).child("env").index(j).child("valueFrom", "fileKeyRef", "volumeName")
                if name not in volumes:
                    errors.append(field.not_found(at, name))
                elif "emptyDir" not in volumes[name]:
                    errors.append(field.invalid(at, name, "referenced volume must be of type emptyDir"))
    return errors
