"""Order of version names."""

from hypothesis import given
from hypothesis import strategies as st

from fakeapiserver.apis.version_priority import kube_aware_key

ORDERED = [
    "v10",
    "v2",
    "v1",
    "v11beta2",
    "v10beta3",
    "v3beta1",
    "v12alpha1",
    "v11alpha2",
    "foo1",
    "foo10",
    "v1.1",
    "vx",
]


@given(st.permutations(ORDERED))
def test_most_stable_and_newest_first(shuffled: list[str]) -> None:
    assert sorted(shuffled, key=kube_aware_key) == ORDERED
