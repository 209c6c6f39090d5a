"""The promises that only some releases of etcd keep.

Upstream: k8s.io/apiserver/pkg/storage/feature/feature_support_checker.go; etcd-io/etcd#15220, etcd-io/etcd#17507.
"""

import re
from typing import Final

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?")
# The first releases of 3.4 and 3.5 that send the notification of progress after all events before it.
_TRUSTED: Final = {(3, 4): 31, (3, 5): 13}


def can_trust_progress(version: str) -> bool:
    """Reports whether the release, as in the response to a StatusRequest, sends progress notifications on demand that can be trusted:
    3.4.31, 3.5.13 and later do.

    >>> [can_trust_progress(version) for version in ("3.4.23", "3.4.31", "3.5.12", "3.5.13", "3.6.8", "2.3.8", "not a version")]
    [False, True, False, True, True, False, False]
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return False
    major, minor, patch = map(int, match.groups())
    return patch >= _TRUSTED.get((major, minor), 0) if (major, minor) >= (3, 4) else False
