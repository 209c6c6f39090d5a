"""Finds the place in our tree that decides a part of an answer: by its path, and by the part of the answer that differs."""

import re
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_REGISTRY: Final = _ROOT / "fakeapiserver/registry"
_PACKAGES: Final = {"": "core", "internal.apiserver.k8s.io": "apiserverinternal"}
# What a difference says -> the place that decides it, whatever the resource.
_BY_DIFFERENCE: Final = (
    (re.compile(r"managedFields"), "fakeapiserver/apimachinery/managedfields"),
    (re.compile(r"columnDefinitions"), "fakeapiserver/apis/versions: columns.json"),
    (re.compile(r"(?i)json ?patch|patch operation|doc is missing|strategic merge"), "fakeapiserver/apimachinery/patch"),
    (re.compile(r"strict decoding|unknown field|cannot unmarshal|unable to decode"), "fakeapiserver/apimachinery/schema"),
    (re.compile(r"admission webhook|failed calling webhook"), "admission/plugins/webhook"),
    (re.compile(r"cannot \w+ resource|is forbidden: User"), "fakeapiserver/apis/versions: bootstrap.json, fakeapiserver/auth"),
)  # fmt: skip
_BY_PATH: Final = (
    (re.compile(r"^/openapi"), "fakeapiserver/endpoints/openapi"),
    (re.compile(r"^/apis?/?(\?|$)|^/apis/[^/]+/?(\?|$)|^/apis?/([^/]+/)?v\d\w*/?(\?|$)"), "fakeapiserver/endpoints/discovery.py"),
    (re.compile(r"^/(?!apis?/)"), "fakeapiserver/server/pages"),
)  # fmt: skip
_RESOURCE: Final = re.compile(r"^/(?:api|apis/(?P<group>[^/]+))/v\w+/(?:namespaces/[^/]+/)?(?P<resource>[^/?]+)")


def place_of(path: str, difference: str) -> str:
    """Returns the file or folder that decides what differs in the answer to a request for a path."""
    for text, table in ((path, _BY_PATH), (difference, _BY_DIFFERENCE)):
        for pattern, place in table:
            if pattern.search(text):
                return place
    match = _RESOURCE.match(path)
    return _registry_place(match["group"] or "", match["resource"]) if match else "fakeapiserver/endpoints"


def _registry_place(group: str, resource: str) -> str:
    """The resource's own file, if it has one, or its group's folder."""
    folder = _REGISTRY / (_PACKAGES.get(group) or group.partition(".")[0])
    if not folder.is_dir():
        return f"{(_REGISTRY / 'apiextensions').relative_to(_ROOT)} (no folder for {group})"
    for singular in (resource.removesuffix("s"), resource.removesuffix("es"), resource.removesuffix("ies") + "y"):
        for place in (folder / f"{singular}.py", folder / singular, folder / resource):
            if place.exists():
                return str(place.relative_to(_ROOT))
    return str(folder.relative_to(_ROOT))
