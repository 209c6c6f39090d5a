"""Predicates of label selectors agree with the selectors."""

import pytest

from fakeapiserver.apimachinery import labels
from fakeapiserver.endpoints.verbs.selection import _with_labels
from fakeapiserver.storage.interface import Index, StoredObject

LABELS = [
    {},
    {"app": "a"},
    {"app": "b"},
    {"app": ""},
    {"tier": "x"},
    {"app": "a", "tier": "x"},
    {"app": "a", "tier": "y", "other": "z"},
]


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", 7),
        ("app=a", 3),
        ("app==a", 3),
        ("app=", 1),
        ("app=a,app=b", 0),
        ("app=a,app==a", 3),
        ("app=a,tier=x", 1),
        ("tier=x,app=a,other=z", 0),
        ("app in (a,b)", 4),
        ("app=a,tier in (x,y)", 2),
        ("app!=a", 4),
        ("app=a,tier!=x", 2),
        ("app", 5),
        ("!app", 2),
        ("app=a,!tier", 1),
    ],
)
def test_a_predicate_selects_what_its_selector_matches(text: str, selected: int) -> None:
    selector = labels.parse(text)
    selects = _with_labels(selector)
    chosen = [each for each in LABELS if selects(StoredObject("k", b"{}", 1, 1, Index(labels=each), 1))]
    assert chosen == [each for each in LABELS if selector.matches(each)]
    assert len(chosen) == selected
