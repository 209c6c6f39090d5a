"""Values that a flag can't have are refused in upstream's words."""

from pathlib import Path

import pytest

from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.flags import parse
from fakeapiserver.cli.unheeded_flags import UNENCRYPTED
from tests.storage.encryption.examples import IDENTITY, written


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


def test_an_empty_file_name_means_no_file() -> None:
    assert parse(["--audit-policy-file="]).config.audit.policy_file is None


_OVERRIDES = "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated"
_SAME_VERSION = "cannot be set to true if the emulation version is the same as the binary version"
_NO_PEERS = "--feature-gates=UnknownVersionInteroperabilityProxy=false"


# What kube-apiserver 1.36.3 said, and 1.37.2 of emulated versions.
@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            ["--storage-media-type=application/xml"],
            '--storage-media-type "application/xml" invalid, allowed values: application/json, '
            "application/vnd.kubernetes.protobuf, application/yaml",
        ),
        (
            ["--storage-backend=etcd2"],
            "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'",
        ),
        (["--etcd-servers-overrides=a"], _OVERRIDES),
        (["--etcd-servers-overrides=/pods#http://a;b/c#http://d,x#y"], _OVERRIDES),
        (
            ["--etcd-count-metric-poll-period=x"],
            'invalid argument "x" for "--etcd-count-metric-poll-period" flag: time: invalid duration "x"',
        ),
        (
            ["--delete-collection-workers=x"],
            'invalid argument "x" for "--delete-collection-workers" flag: strconv.ParseInt: parsing "x": invalid syntax',
        ),
        (["--watch-cache-sizes=pods"], "invalid value of watch cache size: pods"),
        (["--watch-cache-sizes=pods#x"], "invalid size of watch cache size: pods#x"),
        (
            ["--encryption-provider-config-automatic-reload=true"],
            "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config",
        ),
        (["--emulated-version=1.38"], "emulation version 1.38 is not between [1.34, 1.37.0]"),
        (
            ["--emulated-version=1.30"],
            "[emulation version 1.30 is not between [1.34, 1.37.0], "
            "minCompatibilityVersion version 1.34 is not between [1.34, 1.30]]",
        ),
        (["--emulated-version=x"], 'could not parse "x" as version'),
        (["--emulated-version=kube=1.35,kube=1.34"], "duplicate version flag, kube=1.35 and kube=1.34"),
        (["--emulated-version=foo=1.35"], "component not registered: foo"),
        (["--emulated-version=1.35.2"], "patch version not allowed, got: kube=1.35.2"),
        (["--min-compatibility-version=1.20"], "minCompatibilityVersion version 1.20 is not between [1.34, 1.37]"),
        (
            ["--emulated-version=1.35", "--min-compatibility-version=1.36"],
            "minCompatibilityVersion version 1.36 is not between [1.34, 1.35]",
        ),
        (
            ["--runtime-config-emulation-forward-compatible=true"],
            f"ServerRunOptions.RuntimeConfigEmulationForwardCompatible {_SAME_VERSION}",
        ),
        (["--emulation-forward-compatible"], f"ServerRunOptions.EmulationForwardCompatible {_SAME_VERSION}"),
        (
            ["--runtime-config=flowcontrol.apiserver.k8s.io/v1=false"],
            "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false conflicts with --enable-priority-and-fairness=true",
        ),
        (
            ["--peer-ca-file=x", _NO_PEERS],
            "--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on",
        ),
        (
            ["--coordinated-leadership-lease-duration=1s"],
            "--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline",
        ),
    ],
)
def test_values_of_flags_without_effect_are_refused_all_the_same(flags: list[str], problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(flags)
    assert str(refused.value) == problem


def test_flags_of_storage_are_accepted() -> None:
    flags = [
        "--storage-media-type=application/json",
        "--storage-backend=etcd3",
        "--etcd-servers-overrides=/pods#http://a;http://b",
        "--watch-cache-sizes=pods#10",
        "--emulated-version=kube=1.35",
        "--runtime-config-emulation-forward-compatible=true",
    ]
    assert len(parse(flags).warnings) == len(flags) - 2  # the media type and the version have effects


@pytest.mark.parametrize(
    ("flags", "is_warned"),
    [([], True), (["--etcd-servers=http://127.0.0.1:2379"], False), (["--etcd"], False), (["--load=etcd.db"], False)],
)
def test_a_file_that_encrypts_is_of_use_with_etcd_only(tmp_path: Path, flags: list[str], is_warned: bool) -> None:
    file = tmp_path / "encryption.yaml"
    file.write_bytes(written({"secrets": [IDENTITY]}))
    parsed = parse([f"--encryption-provider-config={file}", "--encryption-provider-config-automatic-reload", *flags])
    assert parsed.warnings == ([UNENCRYPTED] if is_warned else [])
    assert (parsed.config.etcd.encryption_config, parsed.config.etcd.reloads_encryption) == (file, True)


def test_a_file_that_encrypts_is_checked_at_once(tmp_path: Path) -> None:
    file = tmp_path / "encryption.yaml"
    file.write_bytes(written({"secrets": []}))
    with pytest.raises(UsageError, match=r"resources\[0\].providers: Required value: at least one resources\[0\]"):
        parse([f"--encryption-provider-config={file}"])
