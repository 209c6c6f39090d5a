"""Owner references and finalizers."""

from typing import Any

from fakeapiserver.testing.assertions.objects import AnyCluster, Found, Named, find


def assert_owned_by(
    cluster: AnyCluster, obj: Named, owner: Named, *, controller: bool = True, namespace: str | None = None
) -> None:
    """Asserts that the object has a reference to the owner, which exists, with its uid and kind; otherwise the garbage collector would
    delete the object at once, or never.

    - `controller`: the reference must also be that of the managing controller.
    - `namespace`: of objects that name none, by default `default`."""
    found, owned_by = find(cluster, obj, namespace), find(cluster, owner, namespace)
    if problem := _problem(cluster, found, owned_by, controller):
        raise AssertionError(f"{found.reference} isn't owned by {owned_by.reference}: {problem}.\n{found}")


def _problem(cluster: AnyCluster, found: Found, owner: Found, controller: bool) -> str:
    """Returns the fault of the owner references, or ""."""
    references: list[dict[str, Any]] = found.object["metadata"].get("ownerReferences") or []
    if not references:
        return "it has no owner references"
    uid, name = owner.object["metadata"]["uid"], owner.reference.name
    match = next((each for each in references if each.get("uid") == uid), None)
    if match is None:
        stale = [each for each in references if each.get("name") == name and each.get("kind") == owner.object["kind"]]
        if stale:
            return f"the reference to {name} has the uid {stale[0].get('uid')}, but the owner's is {uid}"
        owners = (f"{each.get('kind')} {each.get('name')}" for each in references)
        return f"its owners are {', '.join(owners)}"
    if owner.reference.namespace and owner.reference.namespace != found.reference.namespace:
        return f"an owner in the namespace {owner.reference.namespace} can't own objects elsewhere"
    if match.get("kind") != owner.object["kind"] or match.get("name") != name:
        return f"the reference names {match.get('kind')} {match.get('name')}"
    group = owner.reference.row.gvr.group
    if match.get("apiVersion", "").rpartition("/")[0] != group:
        return f"the reference has the apiVersion {match.get('apiVersion')}, but the owner is of the group {group or '(core)'}"
    if controller and not match.get("controller"):
        return "the reference doesn't have controller: true"
    return ""


def assert_finalizers(cluster: AnyCluster, obj: Named, *finalizers: str, namespace: str | None = None) -> None:
    """Asserts that the object has exactly these finalizers, in any order; none are given: that it has none."""
    found = find(cluster, obj, namespace)
    present = found.object["metadata"].get("finalizers") or []
    if found.reference.row.gvk.kind == "Namespace":
        present = [*present, *(found.object.get("spec", {}).get("finalizers") or [])]
    if sorted(present) != sorted(finalizers):
        raise AssertionError(f"{found.reference} has {_listed(present)}, not {_listed(finalizers)}.\n{found}")


def _listed(finalizers: Any) -> str:
    return f"the finalizers {', '.join(sorted(finalizers))}" if finalizers else "no finalizers"
