"""Times on the wire."""

import pytest

from fakeapiserver.apimachinery.timestamp import rfc3339, rfc3339_micro

YEAR_ONE = -62135596800


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1795312199.9, "2026-11-22T01:49:59Z"),
        (YEAR_ONE + 2, "0001-01-01T00:00:02Z"),
        (-46357142400, "0501-01-01T00:00:00Z"),
    ],
)
def test_a_year_has_four_digits(seconds: float, text: str) -> None:
    assert rfc3339(seconds) == text
    assert rfc3339_micro(int(seconds)) == text.replace("Z", ".000000Z")
