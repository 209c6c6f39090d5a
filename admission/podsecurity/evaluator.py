"""A pod against one level of the standards.

Upstream: k8s.io/pod-security-admission/policy/{registry,checks}.go.
"""

from functools import lru_cache
from typing import NamedTuple

from fakeapiserver.admission.podsecurity.checks import BASELINE, RESTRICTED, CheckPod, Finding, Pod, Version
from fakeapiserver.admission.podsecurity.levels import LevelVersion
from fakeapiserver.apimachinery.meta import Object


class Result(NamedTuple):
    """The violations of a pod; empty if it is allowed."""

    findings: tuple[Finding, ...] = ()

    @property
    def allowed(self) -> bool:
        return not self.findings

    @property
    def reason(self) -> str:
        """`host namespaces, privileged`."""
        return ", ".join(finding.reason for finding in self.findings)

    @property
    def detail(self) -> str:
        """`host namespaces (hostPID=true), privileged (container "a" must not …)`."""
        return ", ".join(f"{finding.reason} ({finding.detail})" for finding in self.findings)


def evaluate(wanted: LevelVersion, metadata: Object, spec: Object) -> Result:
    if wanted.level == "privileged":
        return Result()
    pod = Pod(metadata, spec)
    findings = (check(pod) for check in _checks(wanted))
    return Result(tuple(finding for finding in findings if finding is not None))


@lru_cache(256)
def _checks(wanted: LevelVersion) -> tuple[CheckPod, ...]:
    """Returns the checks, those of the baseline first, each group by name; restricted ones replace those that they
    override.
    """
    baseline = _at(BASELINE, wanted.version)
    restricted = _at(RESTRICTED, wanted.version) if wanted.level == "restricted" else {}
    overridden = {name for version in restricted.values() for name in version.overrides}
    kept = [baseline[name] for name in sorted(baseline) if name not in overridden]
    return tuple(version.check for version in (*kept, *(restricted[name] for name in sorted(restricted))))


def _at(checks: dict[str, tuple[Version, ...]], version: int) -> dict[str, Version]:
    """Each check as it was in a minor version, without those that came later."""
    by_level = {}
    for name, versions in checks.items():
        known = [candidate for candidate in versions if candidate.minimum <= version]
        if known:
            by_level[name] = known[-1]
    return by_level
