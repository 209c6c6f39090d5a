"""docs/faults.md names every field of a fault."""

import re
from pathlib import Path

from fakeapiserver.faults.readers import FIELDS, STATUSES

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/faults.md").read_text()


def test_it_names_every_field_and_status() -> None:
    named = set(re.findall(r"`([a-z_]+)", PAGE))
    assert set(FIELDS) - named == set()
    assert [status for status in STATUSES if str(status) not in PAGE] == []
