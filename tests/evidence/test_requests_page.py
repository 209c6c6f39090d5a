"""docs/requests.md names every detector and every field of a budget."""

import re
from pathlib import Path

from fakeapiserver.evidence.findings import Limits
from fakeapiserver.testing.budgets import Budget

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/requests.md").read_text()


def test_it_names_every_detector_and_field() -> None:
    named = set(re.findall(r"`([a-z_]+)", PAGE))
    assert {*Limits.__annotations__, *Budget.__struct_fields__} - named == set()
