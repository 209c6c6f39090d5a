"""Names of custom resources: each is judged alone, against every name of the group."""

from typing import Any

import pytest

from fakeapiserver.registry.apiextensions.accepted_names import accept

WIDGETS = {"plural": "widgets", "singular": "widget", "shortNames": ["wg"], "kind": "Widget", "listKind": "WidgetList"}
GEARS = {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}


@pytest.mark.parametrize(
    ("requested", "accepted", "reason", "message", "names"),
    [
        (GEARS, {}, "NoConflicts", "no conflicts found", GEARS),
        ({**GEARS, "shortNames": ["wg", "gr"]}, {}, "ShortNamesConflict", '"wg" is already in use', GEARS),
        (
            {**GEARS, "shortNames": ["wg", "widget"]},
            {},
            "ShortNamesConflict",
            '["wg" is already in use, "widget" is already in use]',
            GEARS,
        ),
        # each name that is free is taken; the last conflict is reported
        (
            {**GEARS, "singular": "wg", "kind": "WidgetList"},
            {},
            "KindConflict",
            '"WidgetList" is already in use',
            {"plural": "gears", "kind": "", "listKind": "GearList"},
        ),
        # what it has already it keeps, until the new name is free
        ({**GEARS, "singular": "widget"}, GEARS, "SingularConflict", '"widget" is already in use', GEARS),
        ({**GEARS, "singular": "cog"}, GEARS, "NoConflicts", "no conflicts found", {**GEARS, "singular": "cog"}),
        ({**GEARS, "singular": "gears"}, GEARS, "SingularConflict", '"gears" is already in use', GEARS),
        (
            {**GEARS, "categories": ["all"]},
            GEARS,
            "NoConflicts",
            "no conflicts found",
            {**GEARS, "categories": ["all"]},
        ),
    ],
)
def test_names(
    requested: dict[str, Any], accepted: dict[str, Any], reason: str, message: str, names: dict[str, Any]
) -> None:
    accepted_names = accept(requested, accepted, [WIDGETS, accepted])
    assert (accepted_names.reason, accepted_names.message, accepted_names.names) == (reason, message, names)
    assert accepted_names.status == ("True" if reason == "NoConflicts" else "False")
