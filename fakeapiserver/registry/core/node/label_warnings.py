"""Warnings about selectors that use deprecated labels of nodes.

Upstream: pkg/api/node/util.go.
"""

from collections.abc import Iterator
from typing import Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.meta import Object

DEPRECATED_NODE_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def node_term_warnings(term: Object, path: Path, *, preferred: bool = False) -> Iterator[str]:
    """Warnings about a NodeSelectorTerm; about a preferred term, which isn't validated, also those about its values."""
    for i, expression in enumerate(term.get("matchExpressions") or ()):
        at, key = path.child("matchExpressions").index(i), expression.get("key", "")
        if key in DEPRECATED_NODE_LABELS:
            yield f"{at.child('key')}: {key} is {DEPRECATED_NODE_LABELS[key]}"
        for j, value in enumerate(expression.get("values") or () if preferred else ()):
            for problem in names.is_valid_label_value(value):
                yield f"{at.child('values').index(j)}: {value} is invalid, " + problem


def node_selector_warnings(selector: Object | None, path: Path) -> list[str]:
    """Warnings about a LabelSelector that selects nodes."""
    warnings = list(node_term_warnings(selector or {}, path))
    for label in (selector or {}).get("matchLabels") or ():
        if label in DEPRECATED_NODE_LABELS:
            warnings.append(f"{path.child('matchLabels').child(label)}: {DEPRECATED_NODE_LABELS[label]}")
    return warnings
