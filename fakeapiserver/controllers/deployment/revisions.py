"""The choice of the new replica set, and the numbers of revisions: pure (upstream:
pkg/controller/deployment/util/deployment_util.go).
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.workloads.pod_template import same_templates
from fakeapiserver.controllers.deployment.counts import DESIRED_REPLICAS, MAX_REPLICAS, by_creation

log = logging.getLogger(__name__)

# The label that distinguishes the pods of different templates.
POD_TEMPLATE_HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
# Annotation of replica sets: the revisions that they were before.
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
# Annotation of deployments: the revision that is wanted back.
ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"

_KEPT_APART: Final = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        ROLLBACK_TO,
    )
)
_MAX_HISTORY: Final = 2000  # characters


def annotations_of(obj: Object) -> dict[str, str]:
    """Not the caller's to change."""
    annotations: dict[str, str] = obj["metadata"].get("annotations") or {}
    return annotations


def with_annotations(obj: Object, annotations: Mapping[str, str]) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations}}}


def parsed(text: str) -> int | None:
    """An int64."""
    try:
        return parse_int(text)
    except ValueError:
        return None


def revision(replica_set: Object) -> int | None:
    """Returns the replica set's revision; 0 without one, None for an invalid number."""
    text = annotations_of(replica_set).get(REVISION)
    return 0 if text is None else parsed(text)


def max_revision(replica_sets: Iterable[Object]) -> int:
    return max((number for replica_set in replica_sets if (number := revision(replica_set)) is not None), default=0)


def last_revision(replica_sets: Iterable[Object]) -> int:
    """Returns the revision before the newest, or 0."""
    numbers = sorted(
        (number for replica_set in replica_sets if (number := revision(replica_set)) is not None), reverse=True
    )
    return numbers[1] if len(numbers) > 1 else 0


def find_new(deployment: Object, replica_sets: Iterable[Object]) -> Object | None:
    """The replica set of the deployment's template, the oldest of several."""
    template = deployment["spec"]["template"]
    return next(
        (
            replica_set
            for replica_set in by_creation(replica_sets)
            if same_templates(replica_set["spec"]["template"], template, POD_TEMPLATE_HASH)
        ),
        None,
    )


def new_annotations(deployment: Object, replica_set: Object, number: int) -> dict[str, str]:
    """The new replica set's annotations: the deployment's own, and at least revision `number`."""
    annotations = {
        **annotations_of(replica_set),
        **{key: value for key, value in annotations_of(deployment).items() if key not in _KEPT_APART},
    }
    text = annotations.get(REVISION)
    current = parsed(text) if text else 0
    if current is None:
        log.info("the revision of replica set %s is no number: %s", replica_set["metadata"].get("name", ""), text)
        return annotations
    if current < number:
        annotations[REVISION] = str(number)
        if text is not None:
            # It was a revision before: the deployment was rolled back to it.
            _remember(annotations, text)
    return annotations


def _remember(annotations: dict[str, str], number: str) -> None:
    known = annotations.get(REVISION_HISTORY, "")
    if not known:
        annotations[REVISION_HISTORY] = number
        return
    numbers = known.split(",")
    length = len(known) + len(number) + 1
    while length > _MAX_HISTORY and numbers:
        length -= len(numbers.pop(0)) + 1
    if length <= _MAX_HISTORY:
        annotations[REVISION_HISTORY] = ",".join([*numbers, number])


def rolled_back_annotations(deployment: Object, replica_set: Object) -> dict[str, str]:
    """The deployment's, after it was rolled back to the replica set's template."""
    own = {key: value for key, value in annotations_of(deployment).items() if key in _KEPT_APART}
    return own | {key: value for key, value in annotations_of(replica_set).items() if key not in _KEPT_APART}


def rollback_to(deployment: Object) -> int | None:
    """The revision that is wanted back, 0 for the last one; None: none is."""
    return parsed(annotations_of(deployment).get(ROLLBACK_TO, ""))
