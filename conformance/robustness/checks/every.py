"""All checks together."""

from typing import Final

from conformance.robustness.checks import reads, store, watches
from conformance.robustness.checks.timeline import Timeline
from conformance.robustness.history import History

CHECKS: Final = (*store.CHECKS, *reads.CHECKS, *watches.CHECKS)


def problems(history: History) -> list[str]:
    """Everything that is wrong, each with the name of its check."""
    timeline = Timeline(history)
    return [f"{check.__name__}: {text}" for check in CHECKS for text in check(timeline)]
