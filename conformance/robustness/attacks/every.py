"""All attacks."""

from collections.abc import Iterator

from conformance.robustness.attacks import (
    admitted,
    builtin,
    crowds,
    custom,
    depths,
    frames,
    metadata,
    patches,
    pods,
    requests,
    texts,
    wire,
)
from conformance.robustness.attacks.attack import Attack


def attacks() -> Iterator[Attack]:
    for module in (pods, metadata, builtin, custom, patches, requests, texts, admitted, wire, depths, frames, crowds):
        yield from module.attacks()
