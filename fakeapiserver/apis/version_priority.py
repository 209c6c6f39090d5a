"""The order of API versions by name: v2 v1 v2beta1 v1beta2 v1alpha1 other.

Upstream: k8s.io/apimachinery/pkg/version/helpers.go
"""

import re
from typing import Final

_KUBE_AWARE: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?\Z", re.ASCII)
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def kube_aware_key(version: str) -> tuple[int, int, int, int, str]:
    """A sort key that puts the most stable and newest first.

    >>> sorted(["v1alpha1", "v10", "foo", "v2", "v3beta1", "bar"], key=kube_aware_key)
    ['v10', 'v2', 'v3beta1', 'v1alpha1', 'bar', 'foo']
    """
    match = _KUBE_AWARE.match(version)
    if match is None:
        return (1, 0, 0, 0, version)
    major, stability, minor = match.groups()
    return (0, _STABILITY[stability], -int(major), -int(minor or 0), "")
