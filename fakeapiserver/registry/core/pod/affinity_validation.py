"""Validation of a pod's affinity and topology spread, and of their changes while the pod is gated.

Upstream: pkg/apis/core/validation/validation.go (validateAffinity, validateTopologySpreadConstraints,
validateNodeAffinityMutation and what they call).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.core.node.selector_validation import node_selector_errors, node_term_errors
from fakeapiserver.registry.core.pod.options import PodOptions
from fakeapiserver.registry.generic.label_selector import label_selector_errors

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT: Final = "must be in the range 1-100"
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")


def affinity_errors(affinity: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    if (of_nodes := affinity.get("nodeAffinity")) is not None:
        errors += _node_affinity_errors(of_nodes, path.child("nodeAffinity"))
    for kind in ("podAffinity", "podAntiAffinity"):
        terms, at = affinity.get(kind) or {}, path.child(kind)
        for i, term in enumerate(terms.get(_REQUIRED) or ()):
            errors += _pod_term_errors(term, at.child(_REQUIRED).index(i))
        for i, weighted in enumerate(terms.get(_PREFERRED) or ()):
            term_path = at.child(_PREFERRED).index(i)
            errors += _weight_errors(weighted, term_path)
            errors += _pod_term_errors(weighted.get("podAffinityTerm") or {}, term_path.child("podAffinityTerm"))
    return errors


def _node_affinity_errors(affinity: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    if (selector := affinity.get(_REQUIRED)) is not None:
        errors += node_selector_errors(selector, path.child(_REQUIRED))
    for i, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        at = path.child(_PREFERRED).index(i)
        errors += _weight_errors(weighted, at)
        errors += node_term_errors(weighted.get("preference") or {}, at.child("preference"), any_value=True)
    return errors


def _weight_errors(weighted: Object, path: Path) -> ErrorList:
    weight = weighted.get("weight", 0)
    return [] if 0 < weight <= 100 else [field.invalid(path.child("weight"), weight, _WEIGHT)]


def _pod_term_errors(term: Object, path: Path) -> ErrorList:
    errors = label_selector_errors(term.get("labelSelector"), path.child("labelSelector"))
    errors += label_selector_errors(term.get("namespaceSelector"), path.child("namespaceSelector"))
    for namespace in term.get("namespaces") or ():
        errors += name_errors(namespace, names.is_dns1123_label, path.child("namespace"))
    errors += _label_key_errors(term, path)
    key, at = term.get("topologyKey", ""), path.child("topologyKey")
    if not key:
        errors.append(field.required(at, "can not be empty"))
    return errors + name_errors(key, names.is_qualified_name, at)


def _label_key_errors(term: Object, path: Path) -> ErrorList:
    """The errors in matchLabelKeys and mismatchLabelKeys (ValidateMatchLabelKeysAndMismatchLabelKeys)."""
    matched, mismatched = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    if not matched and not mismatched:
        return []
    selector = term.get("labelSelector")
    errors: ErrorList = []
    for name, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            errors.append(field.forbidden(path.child(name), _NO_SELECTOR))
            continue
        for i, key in enumerate(keys):
            errors += name_errors(key, names.is_qualified_name, path.child(name).index(i))
    if selector is not None:
        errors += _merged_key_errors(selector, matched, path)
    for i, key in enumerate(matched):
        if key in mismatched:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(field.invalid(path.child("matchLabelKeys").index(i), key, detail))
    return errors


def _unmerged_key_errors(constraint: Object, path: Path) -> ErrorList:
    """The errors in matchLabelKeys that don't become part of the selector (ValidateMatchLabelKeysInTopologySpread)."""
    keys, selector = constraint.get("matchLabelKeys") or (), constraint.get("labelSelector")
    errors = [field.forbidden(path, _NO_SELECTOR)] if keys and selector is None else ErrorList()
    known = set((selector or {}).get("matchLabels") or ())
    known.update(row.get("key", "") for row in (selector or {}).get("matchExpressions") or ())
    for i, key in enumerate(keys):
        errors += name_errors(key, names.is_qualified_name, path.index(i))
        if key in known:
            errors.append(field.invalid(path.index(i), key, "exists in both matchLabelKeys and labelSelector"))
    return errors


def _merged_key_errors(selector: Object, matched: Sequence[str], path: Path) -> ErrorList:
    """The errors in keys that the selector has twice: once from matchLabelKeys, which are merged into it, and once as sent."""
    places = {key: i for i, key in enumerate(matched)}
    known = set(selector.get("matchLabels") or ())
    errors: ErrorList = []
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key", "")
        if key in places and key in known:
            detail = "exists in both matchLabelKeys and labelSelector"
            errors.append(field.invalid(path.index(places[key]), key, detail))
        known.add(key)
    return errors


# -------------------------------------------------------------------- topology spread


def spread_errors(constraints: Sequence[Object], path: Path, options: PodOptions) -> ErrorList:
    errors: ErrorList = []
    pairs = Counter((each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in constraints)
    for i, constraint in enumerate(constraints):
        at, action, skew = path.index(i), constraint.get("whenUnsatisfiable", ""), constraint.get("maxSkew", 0)
        if skew <= 0:
            errors.append(field.invalid(at.child("maxSkew"), skew, "must be greater than zero"))
        if not constraint.get("topologyKey"):
            errors.append(field.required(at.child("topologyKey"), "can not be empty"))
        if action not in _ACTIONS:
            errors.append(field.not_supported(at.child("whenUnsatisfiable"), action, _ACTIONS))
        pair = constraint.get("topologyKey", ""), action
        pairs[pair] -= 1
        if pairs[pair]:  # there is another one behind it
            errors.append(field.duplicate(at.child("{topologyKey, whenUnsatisfiable}"), "{" + ", ".join(pair) + "}"))
        errors += _min_domains_errors(constraint.get("minDomains"), action, at.child("minDomains"))
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if (policy := constraint.get(name)) is not None and policy not in _POLICIES:
                errors.append(field.not_supported(at.child(name), policy, _POLICIES))
        if options.spread_label_keys and options.merged_label_keys:
            errors += _label_key_errors(constraint, at)
        else:
            errors += _unmerged_key_errors(constraint, at.child("matchLabelKeys"))
        errors += label_selector_errors(constraint.get("labelSelector"), at.child("labelSelector"))
    return errors


def _min_domains_errors(domains: int | None, action: str, path: Path) -> ErrorList:
    errors: ErrorList = []
    if domains is None:
        return errors
    if domains <= 0:
        errors.append(field.invalid(path, domains, "must be greater than zero"))
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.append(field.invalid(path, domains, detail))
    return errors


# ---------------------------------------------------------------------------- updates


def narrowed_errors(spec: Object, before: Object, path: Path) -> ErrorList:
    """The errors in an update of a gated pod's node selector and affinity, which may only become narrower."""
    errors: ErrorList = []
    now, then = spec.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if not then.items() <= now.items():
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(field.invalid(path.child("nodeSelector"), dict(sorted(now.items())) or None, detail))
    terms, known = _required_terms(spec), _required_terms(before)
    at = path.child("affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
    if known and len(known) != len(terms or ()):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        go_terms = None if terms is None else [internal_form(term, "NodeSelectorTerm") for term in terms]
        return [*errors, field.invalid(at, go_terms, detail)]
    for i, (old, new) in enumerate(zip(known or (), terms or (), strict=False)):
        if not _only_adds(new, old):
            detail = "only additions are allowed (no mutations or deletions)"
            errors.append(field.invalid(at.index(i), internal_form(new, "NodeSelectorTerm"), detail))
    return errors


def _required_terms(spec: Object) -> list[Object] | None:
    selector: Object = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    return selector.get("nodeSelectorTerms")


def _only_adds(new: Object, old: Object) -> bool:
    lists = ("matchExpressions", "matchFields")
    # An empty term selects nothing, so nothing is less.
    if not any(old.get(name) for name in lists) and any(new.get(name) for name in lists):
        return False
    return all((new.get(name) or [])[: len(old.get(name) or ())] == (old.get(name) or []) for name in lists)


def with_node_affinity_of(before: Object, affinity: Object | None) -> Object | None:
    """The new affinity with the old one's nodes, as it is compared with the old one; `before` is the old spec."""
    old: Object | None = before.get("affinity")
    nodes = (old or {}).get("nodeAffinity")
    if (affinity or {}).get("nodeAffinity") == nodes:
        return affinity
    if affinity is None:
        return {"nodeAffinity": nodes}
    kept = {name: value for name, value in affinity.items() if name != "nodeAffinity"}
    if nodes is not None:
        kept["nodeAffinity"] = nodes
    return None if old is None and not kept else kept
