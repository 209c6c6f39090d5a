"""`@pytest.mark.request_budget(writes=10)`: a test fails if the clients of its fake clusters send more requests."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.cluster import Cluster
from fakeapiserver.evidence.requests import RequestList

_MOST_LINES: Final = 60


class Budget(Struct, frozen=True):
    """The most requests that clients may send in a test; None doesn't limit. `user_agent` and `user` are shell patterns."""

    requests: int | None = None
    reads: int | None = None
    writes: int | None = None
    watches: int | None = None
    user_agent: str = "*"
    user: str = "*"


_TEXTS: Final = ("user_agent", "user")


def read(arguments: Iterable[object], fields: Mapping[str, Any]) -> Budget:
    """Returns the budget of a marker. Raises ValueError with one sentence."""
    for argument in arguments:
        raise ValueError(f"takes fields by name, as in request_budget(writes=10), not {argument!r}")
    for name, value in fields.items():
        if name not in Budget.__struct_fields__:
            raise ValueError(f"has no field {name!r}: the fields are {', '.join(Budget.__struct_fields__)}")
        if name in _TEXTS:
            if not isinstance(value, str):
                raise ValueError(f'needs a text such as "my-operator*" for {name}, not {value!r}')
        elif isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"needs a whole number for {name}, not {value!r}")
    if not fields.keys() - {*_TEXTS}:
        raise ValueError("needs a number of requests, reads, writes or watches, as in request_budget(writes=10)")
    return Budget(**fields)


def excess(budget: Budget, clusters: Iterable[Cluster]) -> str:
    """Returns why the budget is exceeded, with a table of the requests, or an empty text."""
    entries = [
        entry for cluster in clusters for entry in cluster.requests.by(user_agent=budget.user_agent, user=budget.user)
    ]
    sent = RequestList(entries)
    groups = {"requests": sent, "reads": sent.reads, "writes": sent.writes, "watches": sent.watches}
    problems = []
    for name, group in groups.items():
        most: int | None = getattr(budget, name)
        if most is not None and len(group) > most:
            more = f"\n… {len(group) - _MOST_LINES} more" if len(group) > _MOST_LINES else ""
            problems.append(f"{len(group)} {name}, but the budget is {most}:\n{group[:_MOST_LINES]}{more}")
    return "\n".join(problems)
