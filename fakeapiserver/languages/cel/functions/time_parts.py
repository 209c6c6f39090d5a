"""Methods that return a part of a timestamp or duration, e.g. getFullYear()."""

from datetime import UTC
from functools import partial
from typing import Any

from fakeapiserver.languages.cel import times
from fakeapiserver.languages.cel.functions.arithmetic import divided
from fakeapiserver.languages.cel.functions.function import Function
from fakeapiserver.languages.cel.values import Timestamp


def time_parts() -> dict[str, Function]:
    def here(name: str, at: Timestamp) -> Any:
        return times.part(name, times.in_zone(at, UTC), at.ns)

    def there(name: str, at: Timestamp, zone: str) -> Any:
        return times.part(name, times.in_zone(at, times.zone_of(zone)), at.ns)

    names = {
        "getFullYear": "year",
        "getMonth": "month",
        "getDayOfYear": "day_of_year",
        "getDayOfMonth": "day_of_month",
        "getDate": "day_of_month_1_based",
        "getDayOfWeek": "day_of_week",
        "getHours": "hours",
        "getMinutes": "minutes",
        "getSeconds": "seconds",
        "getMilliseconds": "milliseconds",
    }
    functions: dict[str, Function] = {}
    for method, name in names.items():
        functions[f"timestamp_to_{name}"] = partial(here, method)
        functions[f"timestamp_to_{name}_{'' if name == 'seconds' else 'with_'}tz"] = partial(there, method)
    second = times.SECOND
    for name, unit in (
        ("hours", 3600 * second),
        ("minutes", 60 * second),
        ("seconds", second),
        ("milliseconds", 10**6),
    ):
        functions[f"duration_to_{name}"] = lambda a, unit=unit: divided(a.ns, unit)
    return functions
