"""The rules of a kind are in a file named after it: `<group>/<kind>.py`, or `<group>/<kind>/strategy.py` as upstream has it."""

from typing import Final

from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.apis.scheme import serving
from fakeapiserver.registry.strategies import package_of, strategy_for

# Kinds that share a file, because they share all or most of their rules.
SHARED: Final = {
    "clusterrole": "role",
    "clusterrolebinding": "rolebinding",
    "mutatingadmissionpolicy": "admission_policy",
    "mutatingadmissionpolicybinding": "admission_policy",
    "mutatingwebhookconfiguration": "webhook_configuration",
    "validatingadmissionpolicy": "admission_policy",
    "validatingadmissionpolicybinding": "admission_policy",
    "validatingwebhookconfiguration": "webhook_configuration",
}

# Kinds whose file is in a room that is named otherwise.
ROOMS: Final = {"persistentvolume": "volume", "persistentvolumeclaim": "volume"}


def test_each_kind_has_its_file() -> None:
    everything = serving(NEWEST, {"AllAlpha": True, "AllBeta": True}, {"api/all": "true"})
    kinds, elsewhere = set(), {}
    for resource in everything.resources.values():
        module = type(strategy_for(resource)).__module__
        if "registry.generic" in module:  # no rules of its own
            continue
        kind, group = resource.gvk.kind.lower(), package_of(resource.gvr.group)
        kinds.add(kind)
        home = f"fakeapiserver.registry.{group}"
        name = SHARED.get(kind, kind)
        if module not in (f"{home}.{name}", f"{home}.{name}.strategy", f"{home}.{ROOMS.get(kind)}.{name}"):
            elsewhere[f"{group}/{kind}"] = module
    assert len(kinds) > 60
    assert elsewhere == {}
