"""Values that a flag can't have are refused in upstream's words."""

import pytest

from fakeapiserver.cli.flags import UsageError, parse


@pytest.mark.parametrize(
    ("flag", "value", "why"),
    [
        ("audit-log-maxage", "x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("audit-log-maxsize", "1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        ("audit-log-compress", "maybe", 'strconv.ParseBool: parsing "maybe": invalid syntax'),
        ("audit-log-batch-throttle-qps", "x", 'strconv.ParseFloat: parsing "x": invalid syntax'),
        ("audit-log-batch-max-wait", "5", 'time: missing unit in duration "5"'),
        ("audit-webhook-batch-initial-backoff", "x", 'time: invalid duration "x"'),
    ],
)
def test_a_value_that_cant_be_read_is_refused(flag: str, value: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse([f"--{flag}={value}"])
    assert str(refused.value) == f'invalid argument "{value}" for "--{flag}" flag: {why}'


def test_no_file_is_none() -> None:
    assert parse(["--audit-policy-file="]).config.audit.policy_file is None
