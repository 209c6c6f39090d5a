"""The order of perturbations: classes of writes take turns, and promising kinds come first."""

import pytest

from fakeapiserver.sweep.perturbation import Perturbation, WritePoint
from fakeapiserver.sweep.planning.ordering import by_promise


def write(verb: str, name: str) -> WritePoint:
    return WritePoint(verb, "secrets", "", "shop", name, 1)


A, B, UPDATE = write("create", "a"), write("create", "b"), write("update", "a")


@pytest.mark.parametrize(
    ("perturbations", "expected"),
    [
        pytest.param(
            [Perturbation("crash", each, "after") for each in (A, B, UPDATE)],
            [
                "crash after create secrets shop/a",
                "crash after update secrets shop/a",
                "crash after create secrets shop/b",
            ],
            id="another write of the same kind comes later",
        ),
        pytest.param(
            [
                Perturbation("refuse", A, "before", 0),
                Perturbation("refuse", A, "before", 500),
                Perturbation("late", resource="pods"),
                Perturbation("stale", step=0, until=1),
                Perturbation("crash", A, "after"),
                Perturbation("crash", B, "after"),
                Perturbation("slow", resource="pods", object="shop/a"),
            ],
            [
                "slow after changes of pods shop/a that is being deleted",
                "crash after create secrets shop/a",
                "restart after step 2 with the state after step 1",
                "refuse create secrets shop/a with 500",
                "late events of pods",
                "refuse create secrets shop/a by a reset connection",
                "crash after create secrets shop/b",
            ],
            id="kinds in the order of what they have found",
        ),
        pytest.param(
            [Perturbation("stale", step=step, until=2) for step in (1, 0)] + [Perturbation("crash", A, "after")],
            [
                "crash after create secrets shop/a",
                "restart after step 3 with the state after step 2",
                "restart after step 3 with the state after step 1",
            ],
            id="each past is a class of its own",
        ),
    ],
)
def test_order(perturbations: list[Perturbation], expected: list[str]) -> None:
    assert [each.id for each in by_promise(perturbations)] == expected
