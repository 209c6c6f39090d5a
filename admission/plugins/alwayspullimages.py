"""Every image is pulled every time. Upstream: k8s.io/kubernetes/plugin/pkg/admission/alwayspullimages/admission.go."""

from collections.abc import Iterator

from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import status_error
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object


class AlwaysPullImages(Handler):
    resources = frozenset({PODS})

    async def admit(self, attributes: Attributes) -> None:
        for _, holder, key in _policies(attributes):
            holder[key] = "Always"

    async def validate(self, attributes: Attributes) -> None:
        wrong = [
            (path, holder.get(key, "")) for path, holder, key in _policies(attributes) if holder.get(key) != "Always"
        ]
        reasons = [f'{path}: Unsupported value: {go_quote(value)}: supported values: "Always"' for path, value in wrong]
        if reasons:
            texts = [forbidden(attributes, reason).message for reason in reasons]
            # Upstream gathers them in an error that carries no status.
            raise status_error(500, "", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _policies(attributes: Attributes) -> Iterator[tuple[str, Object, str]]:
    """Yields the pull policies:

    field path, the object that holds it, its key. Nothing on an update without a new image.
    """
    pod = attributes.object or {}
    if attributes.operation == "UPDATE" and _images(pod) <= _images(attributes.old_object or {}):
        return
    for path, container in _containers(pod):
        yield f"{path}.imagePullPolicy", container, "imagePullPolicy"
    for i, volume in enumerate(pod.get("spec", {}).get("volumes") or ()):
        if volume.get("image") is not None:
            yield f"spec.volumes[{i}].image.pullPolicy", volume["image"], "pullPolicy"


def _containers(pod: Object) -> Iterator[tuple[str, Object]]:
    spec = pod.get("spec") or {}
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(spec.get(key) or ()):
            yield f"spec.{key}[{i}]", container


def _images(pod: Object) -> set[str]:
    return {container.get("image", "") for _, container in _containers(pod)}
