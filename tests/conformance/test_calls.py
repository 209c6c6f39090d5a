"""Requests cost no more calls of functions than those that are recorded: a regression of speed is found on any machine."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Final

import pytest

from conformance.bench.in_process import calls

_ROOT: Final = Path(__file__).parents[2]
_TOLERANCE: Final = 0.05
_RENEW: Final = "python -m conformance.bench.in_process.calls --write"


def compared(recorded: dict[str, int], counted: dict[str, int]) -> tuple[list[str], list[str]]:
    """Returns the kinds of requests that cost more than the tolerance above what is recorded, and those that cost less."""
    texts = {
        name: f"{name}: {counted[name]} calls, {count} recorded ({counted[name] / count - 1:+.1%})"
        for name, count in recorded.items()
    }
    more = [texts[name] for name, count in recorded.items() if counted[name] > count * (1 + _TOLERANCE)]
    less = [texts[name] for name, count in recorded.items() if counted[name] < count * (1 - _TOLERANCE)]
    return more, less


def test_requests_cost_no_more_calls_than_recorded() -> None:
    recorded = calls.recorded()
    if recorded is None:
        pytest.skip(f"no calls are recorded for Python {calls.PYTHON}: {_RENEW}")
    command = [sys.executable, "-m", "conformance.bench.in_process.calls"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout)
    assert counted.keys() == recorded.keys(), f"other requests are recorded; renew them: {_RENEW}"
    more, less = compared(recorded, counted)
    if less:
        warnings.warn(f"requests have become cheaper; record it: {_RENEW}\n" + "\n".join(less), stacklevel=1)
    assert not more, "requests have become more expensive; mend it, or record why: " + _RENEW + "\n" + "\n".join(more)


@pytest.mark.parametrize(
    ("counted", "more", "less"),
    [({"get": 100}, 0, 0), ({"get": 105}, 0, 0), ({"get": 106}, 1, 0), ({"get": 94}, 0, 1)],
)
def test_the_comparison_has_a_tolerance(counted: dict[str, int], more: int, less: int) -> None:
    found = compared({"get": 100}, counted)
    assert (len(found[0]), len(found[1])) == (more, less)
