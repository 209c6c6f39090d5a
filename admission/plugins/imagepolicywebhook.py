"""Pods run only images that a webhook has nothing against.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/imagepolicy/{admission,config}.go.
"""

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.apimachinery.duration import format_duration
from fakeapiserver.apimachinery.errors import StatusError, status_error
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.transport import client_config

if TYPE_CHECKING:
    from fakeapiserver.transport.client_config import Remote

_MARK: Final = ".image-policy.k8s.io/"
_AUDIT: Final = f"imagepolicywebhook{_MARK}"
_CACHE_SIZE: Final = 1024
_CALL_TIMEOUT: Final = 30.0  # seconds
_MINUTE: Final = 60.0
_FORBIDDEN: Final = 403
_GO_KINDS: Final = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


class _Time(NamedTuple):
    """A number of the configuration: what one of it is, what is allowed and what is meant by none; all in seconds."""

    name: str
    scale: float
    least: float
    most: float
    default: float


_RETRY_BACKOFF: Final = _Time("retryBackoff", 0.001, 1e-9, 5 * _MINUTE, 0.5)
_ALLOW_TTL: Final = _Time("allowTTL", 1.0, 1.0, 30 * _MINUTE, 5 * _MINUTE)
_DENY_TTL: Final = _Time("denyTTL", 1.0, 1.0, 30 * _MINUTE, 30.0)


class Status(NamedTuple):
    """The webhook's answer about some images."""

    allowed: bool
    reason: str
    annotations: Mapping[str, str]


class ImagePolicyWebhook(Handler):
    resources = frozenset({PODS})
    subresources = True

    def __init__(self, initializer: Initializer) -> None:
        """ValueError where the configuration won't do; OSError where the kubeconfig can't be read."""
        super().__init__(initializer)
        document = initializer.configuration.get("ImagePolicyWebhook")
        if document is None:
            raise ValueError("no config specified")
        config = _section(document)
        backoff = _seconds(config, _RETRY_BACKOFF)
        self._allow_ttl, self._deny_ttl = _seconds(config, _ALLOW_TTL), _seconds(config, _DENY_TTL)
        self._default_allow = bool(config.get("defaultAllow"))
        self._remote = _remote(str(config.get("kubeConfigFile") or ""), backoff)
        # By the question: until when an answer holds, and the answer. The one that was not used for longest is forgotten first.
        self._known: OrderedDict[bytes, tuple[float, Status]] = OrderedDict()

    async def validate(self, attributes: Attributes) -> None:
        if attributes.subresource not in ("", "ephemeralcontainers"):
            return
        spec = _question(attributes)
        status = self._remembered(spec)
        if status is None:
            try:
                status = await self._ask(spec)
            except ValueError as error:
                if not self._default_allow:
                    raise _refusal(attributes, error) from None
                attributes.annotate(f"{_AUDIT}failed-open", "true")
                return
        for key, value in status.annotations.items():
            attributes.annotate(f"{_AUDIT}{key}", value)
        if not status.allowed:
            denied = f"image policy webhook backend denied one or more images: {status.reason}"
            raise forbidden(attributes, denied if status.reason else "one or more images rejected by webhook backend")

    async def _ask(self, spec: Object) -> Status:
        """ValueError with client-go's text."""
        review = {
            "kind": "ImageReview",
            "apiVersion": "imagepolicy.k8s.io/v1alpha1",
            "metadata": {},
            "spec": spec,
            "status": {"allowed": False},
        }
        status = _status(await self._remote.post(review))
        now, ttl = self.initializer.clock.now(), self._allow_ttl if status.allowed else self._deny_ttl
        self._known[_key(spec)] = now + ttl, status
        if len(self._known) > _CACHE_SIZE:
            self._known.popitem(last=False)
        return status

    def _remembered(self, spec: Object) -> Status | None:
        key = _key(spec)
        until, status = self._known.get(key, (0.0, None))
        if until <= self.initializer.clock.now():
            self._known.pop(key, None)
            return None
        self._known.move_to_end(key)
        return status


def _refusal(attributes: Attributes, error: ValueError) -> StatusError:
    """Returns the error; a refusal by the webhook itself is not repeated."""
    if getattr(error.__cause__, "status", 0) == _FORBIDDEN:
        causes = [{"reason": "UnexpectedServerResponse", "message": str(error)}]
        return status_error(_FORBIDDEN, "Forbidden", str(error), {"causes": causes})
    return forbidden(attributes, str(error))


def _key(spec: Object) -> bytes:
    return msgspec.json.encode(spec, order="sorted")


def _question(attributes: Attributes) -> Object:
    """An ImageReviewSpec."""
    obj = attributes.object or {}
    pod = obj.get("spec") or {}
    lists = ("ephemeralContainers",) if attributes.subresource else ("containers", "initContainers")
    containers = [{"image": one["image"]} if one.get("image") else {} for name in lists for one in pod.get(name) or ()]
    annotations = {key: value for key, value in (metadata(obj).get("annotations") or {}).items() if _MARK in key}
    spec = {"containers": containers, "annotations": annotations, "namespace": attributes.namespace}
    return {key: value for key, value in spec.items() if value}


def _status(answer: Mapping[str, Any]) -> Status:
    """ValueError in Go's words."""
    status = answer.get("status")
    if status is None:
        status = {}
    if not isinstance(status, dict):
        place = "ImageReview.status of type v1alpha1.ImageReviewStatus"
        raise ValueError(f"json: cannot unmarshal {_GO_KINDS[type(status)]} into Go struct field {place}")
    for name, wanted, go_type in (
        ("allowed", bool, "bool"),
        ("reason", str, "string"),
        ("auditAnnotations", dict, "map[string]string"),
    ):
        _check(status.get(name), wanted, f"ImageReviewStatus.status.{name}", go_type)
    annotations = status.get("auditAnnotations") or {}
    for value in annotations.values():
        _check(value, str, "ImageReviewStatus.status.auditAnnotations", "string")
    return Status(bool(status.get("allowed")), status.get("reason") or "", annotations)


def _check(value: Any, wanted: type, place: str, go_type: str, *, exact: bool = False) -> None:
    """`exact` shows numbers."""
    if value is not None and type(value) is not wanted:
        shown = f"number {value}" if exact and type(value) is float else _GO_KINDS[type(value)]
        raise ValueError(f"json: cannot unmarshal {shown} into Go struct field {place} of type {go_type}")


# ------------------------------------------------------------- configuration


def _section(document: Object) -> Object:
    """ValueError in Go's words."""
    config = document.get("imagePolicy")
    _check(config, dict, "AdmissionConfig.imagePolicy", "imagepolicy.imagePolicyWebhookConfig")
    for name, wanted, go_type in (
        *((time.name, int, "time.Duration") for time in (_ALLOW_TTL, _DENY_TTL, _RETRY_BACKOFF)),
        ("defaultAllow", bool, "bool"),
    ):
        _check((config or {}).get(name), wanted, f"imagePolicyWebhookConfig.imagePolicy.{name}", go_type, exact=True)
    return config or {}


def _seconds(config: Object, time: _Time) -> float:
    """-1 turns it off, 0 leaves it to the server. ValueError out of range."""
    number = config.get(time.name) or 0
    if number == -1:
        return 0.0
    if number == 0:
        return time.default
    value = float(number * time.scale)
    if not time.least <= value <= time.most:
        least, most, got = (_shown(seconds) for seconds in (time.least, time.most, value))
        raise ValueError(f"valid value is between {least} and {most}, got {got}")
    return value


def _shown(seconds: float) -> str:
    return "1ns" if seconds == _RETRY_BACKOFF.least else format_duration(seconds)


def _remote(path: str, backoff: float) -> "Remote":
    if not path:
        why = "no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
        raise ValueError(f"invalid configuration: {why}")
    try:
        return client_config.Remote(client_config.load_kubeconfig(Path(path)), _CALL_TIMEOUT, first_pause=backoff)
    except OSError as error:
        raise ValueError(str(error)) from None
