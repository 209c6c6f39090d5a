"""`@pytest.mark.request_budget`: the test fails with the table of the requests if they are more than the budget."""

import pytest

from fakeapiserver.testing.budgets import read

pytest_plugins = ["pytester"]
SUITE = """
import pytest
from tests.plain_client import Client

pytestmark = pytest.mark.fake_cluster(controllers=())

@pytest.mark.request_budget(BUDGET)
def test_it(fake_cluster):
    for name in ("a", "b"):
        Client(fake_cluster).status("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
    Client(fake_cluster).status("GET", "/api/v1/namespaces/default/configmaps")
"""


@pytest.mark.parametrize(
    ("budget", "lines"),
    [
        ("writes=2, reads=1, requests=3, watches=0", []),
        ("writes=0, user_agent='other*'", []),
        ("writes=1", ["*2 writes, but the budget is 1:*", "*create /api/v1/namespaces/default/configmaps 201*"]),
        ("requests=2", ["*3 requests, but the budget is 2:*", "*list /api/v1/namespaces/default/configmaps 200*"]),
        ("10", ["*request_budget takes fields by name*"]),
    ],
)
def test_a_budget(budget: str, lines: list[str], pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.replace("BUDGET", budget))
    result = pytester.runpytest("-p", "no:xdist", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=not lines, failed=bool(lines))
    result.stdout.fnmatch_lines(lines)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"write": 1}, "has no field 'write': the fields are requests, reads, writes"),
        ({"writes": -1}, "needs a whole number for writes, not -1"),
        ({"user": "jane"}, "needs a number of requests"),
        ({"writes": 1, "user": 2}, "needs a text such as"),
    ],
)
def test_a_wrong_budget_is_explained(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read((), fields)
