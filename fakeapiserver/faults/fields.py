"""The fields of a fault as callers write them, for type checkers; rule.py says what they mean and reads them."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

Patterns = str | Sequence[str]
Seconds = float | str


class Fields(TypedDict, total=False):
    """The fields of a fault: see `Fault` for the meaning of each."""

    verb: Patterns
    group: Patterns
    version: Patterns
    resource: Patterns
    subresource: Patterns
    namespace: Patterns
    name: Patterns
    labels: str
    object: str
    user: Patterns
    user_group: Patterns
    user_agent: Patterns
    connection: Patterns
    path: Patterns
    bundled: bool
    holder: str
    quota: str
    webhook: Patterns
    apiservice: Patterns
    malformed: bool
    certificate: Literal["unknown", "expired", "name"]
    status: int
    reason: str
    message: str
    causes: Sequence[Mapping[str, str]]
    retry_after: int
    when: Literal["before", "after"]
    latency: Seconds | Sequence[Seconds]
    hang: bool
    reset: Literal["before", "body", "after"]
    truncate: int
    rate: int
    delay: Seconds
    lag: int
    coalesce: Seconds
    unobserved: str
    states: int | Sequence[int]
    stop_after: int
    end: Literal["clean", "cut"]
    expire: Literal["now", "resume"]
    bookmarks: bool
    watch_list: bool
    stale: int | bool
    expire_continue: bool
    unreal: bool
    duplicate: bool
    reorder: bool
    lose: int
    times: int
    nth: int
    every: int
    probability: float
    seed: int
    after: Seconds
    until: Seconds
