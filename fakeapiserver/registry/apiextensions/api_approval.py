"""Definitions in groups of the Kubernetes community (*.k8s.io, *.kubernetes.io) must name their approval.

Upstream: k8s.io/apiextensions-apiserver/pkg/apihelpers/helpers.go
"""

from typing import Final
from urllib.parse import urlsplit

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata

APPROVAL: Final = "api-approved.kubernetes.io"


def is_protected(group: str) -> bool:
    """Reports whether a group belongs to the Kubernetes community, which must approve its APIs."""
    return any(group == domain or group.endswith(f".{domain}") for domain in ("k8s.io", "kubernetes.io"))


def approval(obj: Object) -> tuple[str, str]:
    """(Missing, Unapproved, Approved or Invalid; why) of a definition in a protected group."""
    text = (metadata(obj).get("annotations") or {}).get(APPROVAL, "")
    where = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not text:
        return "Missing", f"protected groups must have approval annotation {go_quote(APPROVAL)}, {where}"
    if text.startswith("unapproved"):
        return "Unapproved", f"not approved: {go_quote(text)}"
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme and parts.netloc and " " not in text:
        return "Approved", f"approved in {text}"
    reason = 'with either a URL or a reason starting with "unapproved"'
    return "Invalid", f"protected groups must have approval annotation {go_quote(APPROVAL)} {reason}, {where}"
