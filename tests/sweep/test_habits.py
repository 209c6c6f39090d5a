"""The operator's requests and exits are judged beside the undisturbed run, whatever state they lead to."""

from typing import Any

import pytest

from fakeapiserver.evidence.entry import RequestEntry
from fakeapiserver.evidence.requests import RequestList
from fakeapiserver.sweep import habits
from fakeapiserver.sweep.case import Run
from fakeapiserver.sweep.perturbation import Perturbation


def entry(seq: int, verb: str = "update", **fields: Any) -> RequestEntry:
    values: dict[str, Any] = {
        "time": 0.0, "duration": 0.0, "method": "", "path": "", "verb": verb, "group": "", "version": "v1", "resource": "secrets",
        "subresource": "", "namespace": "shop", "name": "db", "patch_type": "", "user": "op", "user_agent": "op", "status": 200,
        "revision": 7, "changed": False, "seq": seq, **fields,
    }  # fmt: skip
    return RequestEntry(**values)


def run(*entries: RequestEntry, **fields: Any) -> Run:
    return Run(requests=RequestList(entries), marks=[0, 0], **fields)


FORBIDDEN = entry(1, "create", status=403)
BY_FAULT = entry(1, "create", status=403, fault="fault 1 (status=403)")
UNCHANGED = [entry(seq) for seq in range(1, 13)]
CONFLICTS = [entry(seq, status=409) for seq in range(1, 60)]
CHANGED = [entry(seq, changed=True) for seq in range(1, 60)]


@pytest.mark.parametrize(
    ("disturbed", "undisturbed", "kind", "expected"),
    [
        pytest.param(run(), run(), "refuse", [], id="nothing"),
        pytest.param(run(exits=[2]), run(), "refuse", ["the operator exits with status 2"], id="an exit"),
        pytest.param(run(exits=[1]), run(), "lease", [], id="an exit after the lease is lost"),
        pytest.param(
            run(FORBIDDEN, has_limited_rights=True),
            run(),
            "crash",
            ["the operator has no right to create secrets"],
            id="a right that only the disturbed run needs",
        ),
        pytest.param(
            run(FORBIDDEN, has_limited_rights=True), run(FORBIDDEN), "crash", [], id="a right that is never there"
        ),
        pytest.param(run(BY_FAULT, has_limited_rights=True), run(), "refuse", [], id="the surprise itself"),
        pytest.param(
            run(FORBIDDEN), run(), "crash", [], id="admission refuses what an operator with all rights writes"
        ),
        pytest.param(
            run(*UNCHANGED),
            run(),
            "crash",
            ["the operator wrote secrets shop/db 12 times without changing it in the last step"],
            id="writes in vain",
        ),
        pytest.param(run(*UNCHANGED), run(*UNCHANGED), "crash", [], id="writes in vain without a surprise, too"),
        pytest.param(
            run(*CHANGED),
            run(),
            "crash",
            ["the operator sent update secrets shop/db 59 times within 5 s in the last step"],
            id="a hot loop",
        ),
        pytest.param(run(*CONFLICTS), run(), "stale", [], id="conflicts of an operator that can't know better"),
        pytest.param(
            run(*CONFLICTS),
            run(),
            "crash",
            [
                "the operator sent update secrets shop/db 59 times within 5 s in the last step",
                "the operator wrote secrets shop/db 59 times without changing it in the last step",
            ],
            id="conflicts without a reason",
        ),
    ],
)
def test_habits(disturbed: Run, undisturbed: Run, kind: Any, expected: list[str]) -> None:
    assert [each.text for each in habits.symptoms(disturbed, undisturbed, Perturbation(kind))] == expected


def test_rights_that_are_missing_from_the_beginning() -> None:
    assert [each.subject for each in habits.forbidden(run(FORBIDDEN, FORBIDDEN, has_limited_rights=True))] == [
        "create secrets"
    ]
    assert habits.forbidden(run(FORBIDDEN)) == []
