"""Feature gates: which features a server of one Kubernetes version has on.

Upstream: k8s.io/component-base/featuregate/feature_gate.go; the gates are recorded in versions/<version>/feature_gates.json.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypedDict

from msgspec import Struct, field

from fakeapiserver.apis import emulation
from fakeapiserver.apis.emulation import NO_EMULATION, Emulation
from fakeapiserver.apis.recorded import NEWEST, known_versions, read_table

# Switch all gates of a stage that are not switched by name.
_STAGES: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}


class _Gate(TypedDict, total=False):
    """`locked`: it can't be switched; `needs`: other gates that must be on with it; `resources`: those that are served only
    while it is on, as group/version/resource."""

    default: bool
    stage: str
    locked: bool
    needs: list[str]
    resources: list[str]


class FeatureGates(Struct, frozen=True):
    """The gates of a `version`, with what `switched` says of them instead of their defaults, as the emulated version has them. Made by
    `feature_gates`."""

    version: str = NEWEST
    switched: Mapping[str, bool] = field(default_factory=dict)
    emulated: str = ""

    def enabled(self, gate: str) -> bool:
        """Reports whether a feature is on. One that this version has no gate for is on if an older version had one (it can't be switched
        any more), and off otherwise (it isn't there yet).
        """
        switched = self.switched.get(gate)
        if switched is not None:
            return switched
        known = _known(self.version, self.emulated).get(gate)
        if known is None:
            return any(gate in _recorded(version) for version in known_versions() if version < self.version)
        return known["default"]

    def at_least(self, version: str) -> bool:
        """Reports whether the server is of this minor version (`v1.36`) or a newer one: for what changed without a gate."""
        return self.version >= version

    def flipped(self) -> Iterator[str]:
        """The gates that aren't as the version has them by default."""
        known = _recorded(self.version)
        gates = known if self.emulated else self.switched
        return (gate for gate in gates if known[gate]["default"] != self.enabled(gate))

    def stages(self) -> Iterator[tuple[str, str, bool]]:
        """Each gate of the version with its stage (ALPHA, BETA, GA, DEPRECATED), and whether it is on."""
        return ((gate, row["stage"], self.enabled(gate)) for gate, row in _known(self.version, self.emulated).items())

    def serve(self, resource: str) -> bool:
        """Reports whether the gates that a resource (group/version/resource) depends on are on."""
        return all(self.enabled(gate) for gate in _gates_of(self.version).get(resource, ()))


DEFAULT_GATES: Final = FeatureGates()


def feature_gates(version: str, switches: Mapping[str, bool], emulated: Emulation = NO_EMULATION) -> FeatureGates:
    """Returns the feature gates of a version with these switches.

    Raises ValueError in upstream's words for gates that are unknown, locked, or need others.
    """
    if not switches:
        return FeatureGates(version, emulated=emulated.version)
    known = _known(version, emulated.version)
    switched: dict[str, bool] = {}
    for gate, on in switches.items():
        if gate not in _recorded(version):
            raise ValueError(f"unrecognized feature gate: {gate}")
        if gate not in known:
            place = f"emulated version {emulated.version[1:]}, min compatibility version {emulated.minimum[1:]}"
            raise ValueError(f"cannot set feature gate {gate} to {str(on).lower()}, feature is PreAlpha at {place}")
        if known[gate].get("locked") and known[gate]["default"] != on:
            stays = str(known[gate]["default"]).lower()
            raise ValueError(f"cannot set feature gate {gate} to {str(on).lower()}, feature is locked to {stays}")
        switched[gate] = on
    for all_of, stage in _STAGES.items():
        if all_of in switches:
            of_stage = (gate for gate, row in known.items() if row["stage"] == stage and gate not in _STAGES)
            switched = dict.fromkeys(of_stage, switches[all_of]) | switched
    gates = FeatureGates(version, switched, emulated.version)
    problems = []
    for gate, row in known.items():
        lacking = [needed for needed in row.get("needs", ()) if gates.enabled(gate) and not gates.enabled(needed)]
        if lacking:
            problems.append(f"{gate} is enabled, but depends on features that are disabled: [{' '.join(lacking)}]")
    if problems:
        raise ValueError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return gates


def leaving_warnings(version: str, switches: Mapping[str, bool]) -> Iterator[str]:
    """Yields upstream's warnings about switched gates that will be removed."""
    said = {"GA": "GA", "DEPRECATED": "deprecated"}
    for gate, on in switches.items():
        if (row := _recorded(version).get(gate)) is not None and row["stage"] in said:
            what = f"{said[row['stage']]} feature gate {gate}={str(on).lower()}"
            yield f"Setting {what}. It will be removed in a future release."


@lru_cache(maxsize=8)
def _gates_of(version: str) -> Mapping[str, list[str]]:
    """Resource (group/version/resource) -> the gates that it depends on."""
    gates: dict[str, list[str]] = {}
    for gate, row in _recorded(version).items():
        for resource in row.get("resources", ()):
            gates.setdefault(resource, []).append(gate)
    return gates


@lru_cache(maxsize=16)
def _known(version: str, emulated: str) -> Mapping[str, _Gate]:
    """The gates of a version as the emulated version has them. Those that came later are missing."""
    own = _recorded(version)
    if emulated in ("", version):
        return own
    later, otherwise = emulation.later_gates(version, emulated), emulation.recorded_gates(version, emulated)
    locked = {gate for gate, row in _recorded(emulated).items() if row.get("locked")}
    return {
        gate: _as_emulated(row, otherwise.get(gate), locked=gate in locked)
        for gate, row in own.items()
        if gate not in later
    }


def _as_emulated(row: _Gate, otherwise: Mapping[str, Any] | None, *, locked: bool) -> _Gate:
    gate: _Gate = {**row, "locked": locked}
    if otherwise is not None:
        gate["default"], gate["stage"] = otherwise["default"], otherwise["stage"]
    return gate


@lru_cache(maxsize=8)
def _recorded(version: str) -> Mapping[str, _Gate]:
    gates: Mapping[str, _Gate] = read_table(version, "feature_gates.json")
    return gates
