"""Scales of workloads, as a controller asks for them (upstream: client-go/scale/client.go, scale/scheme/autoscalingv1/conversion.go)."""

from collections.abc import Iterator
from typing import Final

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import DynamicClient

# How label selectors say what selectors may say in several ways.
_OPERATORS: Final = {"==": "=", "!=": "notin"}
_UNKNOWN: Final = {">": "gt", "<": "lt"}


async def get_scale(client: DynamicClient, resource: GroupVersionResource, namespace: str, name: str) -> Object:
    """Reads a scale, and converts its selector to a label selector.

    Raises ValueError for an invalid selector, StatusError, TransportError, TimeoutError.
    """
    scale = await client.resource(resource, namespace).get(name, "scale")
    text = (scale.get("status") or {}).get("selector")
    if not text:
        return scale
    try:
        selector = label_selector(text)
    except ValueError as error:
        raise ValueError(
            "received an object from a /scale endpoint which was not convertible to autoscaling Scale: "
            f"failed to parse target selector: {error}"
        ) from None
    return {**scale, "status": {**scale["status"], "selector": str(selector)}}


def label_selector(text: str) -> labels.Selector:
    """ValueError for what none can say."""
    return labels.Selector(tuple(_requirements(text)))


def _requirements(text: str) -> Iterator[labels.Requirement]:
    """ValueError."""
    try:
        parsed = labels.parse(text)
    except ValueError as error:
        raise ValueError(f'couldn\'t parse the selector string "{text}": {error}') from None
    for requirement in parsed.requirements:
        if requirement.operator in _UNKNOWN:
            raise ValueError(f'"{_UNKNOWN[requirement.operator]}" is not a valid label selector operator')
        yield labels.Requirement(
            requirement.key, _OPERATORS.get(requirement.operator, requirement.operator), requirement.values
        )
