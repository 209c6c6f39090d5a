"""Merging tolerations.

Upstream: k8s.io/kubernetes/pkg/util/tolerations/tolerations.go.
"""

from collections.abc import Sequence

from fakeapiserver.apimachinery.meta import Object


def merge_tolerations(first: Sequence[Object], second: Sequence[Object]) -> list[Object]:
    """Both lists without what another toleration makes redundant; of equal ones the first stays."""
    every = [*first, *second]
    merged: list[Object] = []
    for i, toleration in enumerate(every):
        later = every[i + 1 :]
        if any(is_superset(other, toleration) for other in merged):
            continue
        if any(other != toleration and is_superset(other, toleration) for other in later):
            continue
        merged.append(toleration)
    return merged


def is_superset(wide: Object, narrow: Object) -> bool:
    """Whether `wide` tolerates everything `narrow` does."""
    if wide == narrow:
        return True
    operator = wide.get("operator") or "Equal"
    key = wide.get("key") or ""
    if (narrow.get("key") or "") != key and (key or operator != "Exists"):
        return False
    effect = wide.get("effect") or ""
    if effect and narrow.get("effect") != effect:
        return False
    if effect == "NoExecute" and not _outlasts(wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")):
        return False
    if operator == "Equal":
        return narrow.get("operator") == "Equal" and (narrow.get("value") or "") == (wide.get("value") or "")
    return bool(operator == "Exists")


def _outlasts(wide: int | None, narrow: int | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)
