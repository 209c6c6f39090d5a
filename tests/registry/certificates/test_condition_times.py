"""When the conditions of a request for a certificate have changed."""

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.certificates import RESOURCES

_LONG_AGO, _NOW = "2020-01-01T00:00:00Z", "1970-01-01T00:00:00Z"


def _with(*conditions: Object) -> Object:
    return {"metadata": {"name": "c"}, "spec": {}, "status": {"conditions": list(conditions)}}


class _Stopped:
    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0


@pytest.mark.parametrize(
    ("status", "since"), [("True", _LONG_AGO), ("False", _NOW)], ids=["was there", "changes its status"]
)
@pytest.mark.parametrize("subresource", ["status", "approval"])
def test_a_condition_that_says_no_time_keeps_that_of_the_same_status(subresource: str, status: str, since: str) -> None:
    strategy = RESOURCES["certificatesigningrequests"].for_server(_Stopped())
    before = {"type": "Failed", "status": "True", "lastUpdateTime": _LONG_AGO, "lastTransitionTime": _LONG_AGO}
    old, new = _with(before), _with({"type": "Failed", "status": status})
    if subresource == "status":
        strategy.prepare_for_status_update(new, old)
    else:
        strategy.prepare_for_subresource_update(subresource, new, old)
    expected = {"type": "Failed", "status": status, "lastUpdateTime": _NOW, "lastTransitionTime": since}
    assert new["status"]["conditions"] == [expected]
