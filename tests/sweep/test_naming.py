"""The name of a perturbation says everything about it."""

import pytest

from fakeapiserver.sweep.perturbation import Perturbation, WritePoint
from fakeapiserver.sweep.planning import naming

POINTS = [
    WritePoint("create", "secrets", "", "shop", "db-login", 1),
    WritePoint("update", "deployments.apps", "status", "shop", "web", 2),
    WritePoint("delete", "databases.example.com", "", "shop", "", 3),
    WritePoint("delete", "pods", "", "shop", "web-0", 1, 2),
    WritePoint("update", "databases.example.com", "status", "shop", "db", 21, 3),
    WritePoint("patch", "clusterroles.rbac.authorization.k8s.io", "", "", "system:web", 12),
]
PERTURBATIONS = [
    *(
        each
        for point in POINTS
        for each in (
            Perturbation("crash", point, "before"),
            Perturbation("crash", point, "after"),
            Perturbation("refuse", point, "before", 500),
            Perturbation("refuse", point, "after", 504),
            Perturbation("refuse", point, "before", 0),
            Perturbation("refuse", point, "after", 0),
            Perturbation("conflict", point),
            Perturbation("slow", point),
            Perturbation("stale", point, until=2),
            Perturbation("stale", point, until=2, resource="databases.example.com"),
            Perturbation("restart", point),
        )
    ),
    Perturbation("slow", resource="databases.example.com", object="shop/db"),
    Perturbation("slow", resource="clusterroles.rbac.authorization.k8s.io", object="*"),
    Perturbation("stale", step=0, until=2),
    Perturbation("stale", step=0, until=0, resource="pods"),
    Perturbation("unobserved", step=1, until=1, resource="pods", object="shop/web-*", states=(2, 2)),
    Perturbation("unobserved", step=1, until=3, resource="databases.example.com", object="shop/db", states=(1, 4)),
    Perturbation("reordered", step=0, until=0, resource="pods"),
    Perturbation("late", resource="pods"),
    Perturbation("late", resource="pods", step=2, until=2),
    Perturbation("lease", step=0, until=0),
    Perturbation("webhook", step=4, until=4, object="vdatabase.example.com"),
    Perturbation("clock"),
]


@pytest.mark.parametrize("perturbation", PERTURBATIONS, ids=lambda each: each.id)
def test_a_name_leads_to_its_perturbation(perturbation: Perturbation) -> None:
    read = naming.read(perturbation.id)
    assert read is not None
    assert read.id == perturbation.id
    ignored = ("states",) if perturbation.kind != "unobserved" else ()
    for field in Perturbation.__struct_fields__:
        if field not in ignored:
            assert getattr(read, field) == getattr(perturbation, field), field


def test_the_step_of_a_write_is_not_in_its_name() -> None:
    read = naming.read(Perturbation("away", POINTS[0], "after", step=0, until=1).id)
    assert read is not None
    assert (read.kind, read.point, read.when, read.until) == ("away", POINTS[0], "after", 1)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "crash",
        "crash after x",
        "refuse create secrets a/b",
        "states of pods unseen in step 1",
        "crush after create secrets a/b",
    ],
)
def test_other_texts(name: str) -> None:
    assert naming.read(name) is None
