"""Tests which orders of causes count as upstream's."""

from typing import Any

import pytest

from conformance.compare.ordering import comparable_in_order, disorder


def answer(*messages: str, warnings: tuple[str, ...] = ()) -> dict[str, Any]:
    causes = [{"field": text, "reason": "Invalid", "message": text} for text in messages]
    status = {"kind": "Status", "message": ", ".join(messages), "details": {"causes": causes}}
    return {"status": 422, "warnings": list(warnings), "body": status}


@pytest.mark.parametrize(
    ("upstream", "ours", "equal"),
    [
        ([answer("a", "b")], answer("a", "b"), True),
        ([answer("a", "b")], answer("b", "a"), False),
        ([answer("a", "b", "c"), answer("b", "a", "c")], answer("b", "a", "c"), True),
        ([answer("a", "b", "c"), answer("b", "a", "c")], answer("c", "a", "b"), False),
        # never seen, but nothing in it is always the other way round
        ([answer("a", "b", "c"), answer("b", "c", "a")], answer("b", "a", "c"), True),
        ([answer("a", "a", "b")], answer("a", "b", "a"), False),
        ([answer(warnings=("x", "y"))], answer(warnings=("y", "x")), False),
    ],
)
def test_what_upstream_always_reports_first_comes_first(
    upstream: list[dict[str, Any]], ours: dict[str, Any], equal: bool
) -> None:
    asked = iter(upstream[1:] * 100 or upstream * 100)
    assert comparable_in_order(upstream[0], ours)
    assert (disorder(upstream[0], ours, lambda: next(asked)) == "") is equal


def test_a_message_in_another_order_than_its_causes_differs() -> None:
    other = answer("a", "b")
    other["body"]["message"] = "b, a"
    assert "the message is 'a, b' != 'b, a'" in disorder(answer("a", "b"), other, lambda: other)


def test_one_cause_or_other_causes_have_no_order_to_compare() -> None:
    assert not comparable_in_order(answer("a"), answer("a"))
    assert not comparable_in_order(answer("a", "b"), answer("a", "c"))
