"""All attacks."""

from collections.abc import Iterator

from conformance.robustness.attacks import builtin, custom, metadata, patches, pods, requests
from conformance.robustness.attacks.attack import Attack


def attacks() -> Iterator[Attack]:
    for module in (pods, metadata, builtin, custom, patches, requests):
        yield from module.attacks()
