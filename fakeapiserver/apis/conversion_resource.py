"""Claims and slices of devices as resource.k8s.io/v1beta1 says them: what a request asks for stands in the request itself rather than
below `exactly`, what a device is stands below `basic`.

Upstream: k8s.io/kubernetes/pkg/apis/resource/v1beta1/conversion.go
"""

import re
from collections.abc import Callable
from typing import Final

from fakeapiserver.apimachinery.meta import Object

# Of the group, those that have this shape.
OLDER_VERSIONS: Final = ("v1alpha3", "v1beta1")
# What v1 has below `exactly`, and v1beta1 beside the request's name.
_EXACTLY: Final = (
    *("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity"),
    "derivedAttributes",
)
_EXACT_FIELD: Final = re.compile(r"(?<=\]\.)exactly\.")
_DEVICE_FIELD: Final = re.compile(r"(spec\.devices\[\d+\]\.)(?!name$)")


def path_in_v1beta1(path: str) -> str:
    """Returns the path in v1beta1 of a field of a v1 claim, template or slice: `spec.devices.requests[0].exactly.count` has no `exactly`
    there."""
    if path.startswith("spec.devices["):
        return _DEVICE_FIELD.sub(r"\1basic.", path, count=1)
    return _EXACT_FIELD.sub("", path, count=1)


def claim_from_v1beta1(obj: Object) -> Object:
    return _changed(obj, "spec", lambda spec: _requests(spec, _request_from_v1beta1))


def claim_to_v1beta1(obj: Object) -> Object:
    return _changed(obj, "spec", lambda spec: _requests(spec, _request_to_v1beta1))


def template_from_v1beta1(obj: Object) -> Object:
    return _changed(obj, "spec", lambda spec: _changed(spec, "spec", lambda it: _requests(it, _request_from_v1beta1)))


def template_to_v1beta1(obj: Object) -> Object:
    return _changed(obj, "spec", lambda spec: _changed(spec, "spec", lambda it: _requests(it, _request_to_v1beta1)))


def slice_from_v1beta1(obj: Object) -> Object:
    return _changed(obj, "spec", lambda spec: _each(spec, "devices", _device_from_v1beta1))


def slice_to_v1beta1(obj: Object) -> Object:
    return _changed(obj, "spec", lambda spec: _each(_without_zeroes(spec), "devices", _device_to_v1beta1))


def _changed(obj: Object, name: str, change: Callable[[Object], Object]) -> Object:
    return {**obj, name: change(obj[name])} if obj.get(name) else obj


def _each(obj: Object, name: str, change: Callable[[Object], Object]) -> Object:
    return {**obj, name: [change(item) for item in obj[name]]} if obj.get(name) else obj


def _requests(spec: Object, change: Callable[[Object], Object]) -> Object:
    return _changed(spec, "devices", lambda devices: _each(devices, "requests", change))


def _request_from_v1beta1(request: Object) -> Object:
    exactly = {name: request[name] for name in _EXACTLY if name in request}
    rest = {name: value for name, value in request.items() if name not in _EXACTLY}
    says_something = any(value is False or value not in ("", 0) for value in exactly.values())
    return {"name": rest.pop("name", ""), **({"exactly": exactly} if says_something else {}), **rest}


def _request_to_v1beta1(request: Object) -> Object:
    rest = {name: value for name, value in request.items() if name != "exactly"}
    return {"name": rest.pop("name", ""), "deviceClassName": "", **(request.get("exactly") or {}), **rest}


def _device_from_v1beta1(device: Object) -> Object:
    return {"name": device.get("name", ""), **(device.get("basic") or {})}


def _device_to_v1beta1(device: Object) -> Object:
    return {"name": device.get("name", ""), "basic": {name: value for name, value in device.items() if name != "name"}}


def _without_zeroes(spec: Object) -> Object:
    """v1beta1 can't say that there is no node, or that it isn't for all."""
    return {name: value for name, value in spec.items() if value or name not in ("nodeName", "allNodes")}
