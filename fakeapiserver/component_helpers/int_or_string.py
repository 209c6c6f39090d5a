"""Counts that may be a share of something: `2` or `"25%"` (upstream: k8s.io/apimachinery/pkg/util/intstr)."""


def scaled_value(value: int | str | None, total: int, *, round_up: bool) -> int:
    """How many that are; nothing is 0. ValueError for text that is no percentage."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError(f"invalid value for IntOrString: invalid type: string is not a percentage: {value!r}")
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100
