"""Time zones, as Go's time.LoadLocation loads them."""

from datetime import UTC

import pytest

from fakeapiserver.apimachinery.location import load_location


@pytest.mark.parametrize("name", ["", "UTC", "Local"])
def test_some_names_need_no_database(name: str) -> None:
    assert load_location(name) is UTC


def test_a_zone_has_its_name() -> None:
    assert str(load_location("Europe/Berlin")) == "Europe/Berlin"


@pytest.mark.parametrize("name", ["a..b", "..", "a..", "../UTC", "x...y", "/etc/localtime", "\\UTC"])
def test_a_name_cannot_lead_out_of_the_database(name: str) -> None:
    with pytest.raises(ValueError, match=r"^time: invalid location name$"):
        load_location(name)


@pytest.mark.parametrize("name", ["Nowhere", "utc ", "a\0b", "a" * 10_000])
def test_other_names_are_unknown(name: str) -> None:
    with pytest.raises(ValueError, match=r"^unknown time zone "):
        load_location(name)
