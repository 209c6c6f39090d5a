"""Writes a stateful set's pods and claims, with an event for each (upstream:
pkg/controller/statefulset/stateful_pod_control.go).
"""

from collections.abc import Callable
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import Indexer
from fakeapiserver.client.core_events import CoreEventRecorder
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, is_already_exists, is_conflict, is_not_found
from fakeapiserver.component_helpers.objects import PERSISTENT_VOLUME_CLAIMS, PODS, is_terminating
from fakeapiserver.controllers.statefulset import claims
from fakeapiserver.controllers.statefulset.identity import (
    claim_name,
    claim_templates,
    identity_matches,
    ordinal_of,
    storage_matches,
    with_identity,
    with_storage,
)

_MAX_TRIES: Final = 4


class ClaimsFailed(Exception):
    """Some claims of a pod are missing or belong to other objects; the text says why."""


class StatefulPodControl:
    """Creates, updates and deletes pods and claims of stateful sets.

    `pods` and `known_claims` are caches, `client` writes, `wrote` is called with a set and its pod. Raises the
    server's StatusErrors.
    """

    def __init__(
        self,
        client: DynamicClient,
        pods: Indexer,
        known_claims: Indexer,
        recorder: CoreEventRecorder,
        wrote: Callable[[Object, Object], None],
    ) -> None:
        self._client = client
        self._pods = pods
        self._claims = known_claims
        self._recorder = recorder
        self._wrote = wrote

    async def create(self, stateful_set: Object, pod: Object) -> None:
        """The pod, and what claims it needs before. ClaimsFailed."""
        try:
            await self._create_claims(stateful_set, pod)
        except ClaimsFailed as error:
            self._tell("create", stateful_set, pod, error)
            raise
        failure: StatusError | None = None
        try:
            created = await self._client.resource(PODS, pod["metadata"]["namespace"]).create(pod)
            self._wrote(stateful_set, created)
        except StatusError as error:
            if is_already_exists(error):
                raise
            failure = error
        await self._update_claims(stateful_set, pod)
        self._tell("create", stateful_set, pod, failure)
        if failure is not None:
            raise failure

    async def update(self, stateful_set: Object, pod: Object) -> None:
        """The pod has the identity and storage of its ordinal, and its claims their owners. ClaimsFailed."""
        metadata = pod["metadata"]
        attempted, failure = False, None
        for _ in range(_MAX_TRIES):
            changed = await self._conformed(stateful_set, pod)
            if changed is None:
                failure = None
                break
            attempted, failure = True, None
            try:
                written = await self._client.resource(PODS, metadata["namespace"]).update(changed)
                self._wrote(stateful_set, written)
                break
            except StatusError as error:
                failure = error
                if not is_conflict(error):
                    break
                pod = self._pods.get_by_key(f"{metadata['namespace']}/{metadata['name']}") or pod
        if attempted:
            self._tell("update", stateful_set, pod, failure)
        if failure is not None:
            raise failure

    async def _conformed(self, stateful_set: Object, pod: Object) -> Object | None:
        """The pod as it should be; None: it is."""
        changed = pod
        if not identity_matches(stateful_set, changed):
            changed = with_identity(stateful_set, changed)
        if not storage_matches(stateful_set, changed):
            changed = with_storage(stateful_set, changed)
            try:
                await self._create_claims(stateful_set, changed)
            except ClaimsFailed as error:
                self._tell("update", stateful_set, pod, error)
                raise
        if not self.claims_match(stateful_set, changed):
            await self._update_claims(stateful_set, changed)
            return changed
        return changed if changed is not pod else None

    async def delete(self, stateful_set: Object, pod: Object) -> None:
        """Deletes a pod; succeeds if it is gone already."""
        metadata = pod["metadata"]
        try:
            await self._client.resource(PODS, metadata["namespace"]).delete(metadata["name"])
        except StatusError as error:
            if not is_not_found(error):
                self._tell("delete", stateful_set, pod, error)
                raise
        self._tell("delete", stateful_set, pod)

    # ------------------------------------------------------------------------- claims

    def _claim(self, stateful_set: Object, name: str) -> Object | None:
        return self._claims.get_by_key(f"{stateful_set['metadata']['namespace']}/{name}")

    def _known(self, stateful_set: Object, pod: Object) -> list[Object]:
        """The pod's claims that are there."""
        names = (claim_name(stateful_set, template, ordinal_of(pod)) for template in claim_templates(stateful_set))
        return [claim for name in names if (claim := self._claim(stateful_set, name)) is not None]

    def claims_match(self, stateful_set: Object, pod: Object) -> bool:
        """The pod's claims have the owners that the set's policy wants."""
        return all(claims.is_owner_up_to_date(claim, stateful_set, pod) for claim in self._known(stateful_set, pod))

    def has_stale_claim(self, stateful_set: Object, pod: Object) -> bool:
        """A claim goes with a former pod of that name: a new one has to wait."""
        if claims.retention_policy(stateful_set)[1] == "Retain":
            return False
        return any(claims.is_stale(claim, pod) for claim in self._known(stateful_set, pod))

    async def create_missing_claims(self, stateful_set: Object, pod: Object) -> None:
        """ClaimsFailed."""
        await self._create_claims(stateful_set, pod)
        await self._update_claims(stateful_set, pod)

    async def update_claims(self, stateful_set: Object, pod: Object) -> None:
        """Gives the pod's claims the owners that the set's policy wants. ClaimsFailed."""
        namespace = stateful_set["metadata"]["namespace"]
        for claim in self._known(stateful_set, pod):
            name = claim["metadata"]["name"]
            if claims.has_unexpected_controller(claim, stateful_set, pod):
                text = (
                    f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
                    "the retention policy is ignored for this claim"
                )
                self._recorder.event(stateful_set, "Warning", "ConflictingController", text)
            if claims.is_owner_up_to_date(claim, stateful_set, pod):
                continue
            try:
                changed = claims.with_owners(claim, stateful_set, pod)
                await self._client.resource(PERSISTENT_VOLUME_CLAIMS, namespace).update(changed)
            except StatusError as error:
                raise ClaimsFailed(f"could not update claim {name} for delete policy ownerRefs: {error}") from error

    async def _update_claims(self, stateful_set: Object, pod: Object) -> None:
        try:
            await self.update_claims(stateful_set, pod)
        except ClaimsFailed as error:
            self._tell("update", stateful_set, pod, error)
            raise

    async def _create_claims(self, stateful_set: Object, pod: Object) -> None:
        failures = []
        for claim in claims.new_claims(stateful_set, pod):
            name, namespace = claim["metadata"]["name"], claim["metadata"]["namespace"]
            known = self._claim(stateful_set, name)
            if known is not None:
                if is_terminating(known):
                    failures.append(f"pvc {name} is being deleted")
                continue
            try:
                await self._client.resource(PERSISTENT_VOLUME_CLAIMS, namespace).create(claim)
            except StatusError as error:
                failures.append(f"failed to create PVC {name}: {error}")
                if not is_already_exists(error):
                    self._tell_of_claim(stateful_set, pod, name, error)
            else:
                self._tell_of_claim(stateful_set, pod, name)
        if failures:
            raise ClaimsFailed(failures[0] if len(failures) == 1 else f"[{', '.join(dict.fromkeys(failures))}]")

    # ------------------------------------------------------------------------- events

    def _tell(self, verb: str, stateful_set: Object, pod: Object, failure: Exception | None = None) -> None:
        text = f"{verb.title()} Pod {pod['metadata']['name']} in StatefulSet {stateful_set['metadata']['name']}"
        self._event(
            stateful_set, verb, f"{text} successful" if failure is None else f"{text} failed error: {failure}", failure
        )

    def _tell_of_claim(self, stateful_set: Object, pod: Object, claim: str, failure: Exception | None = None) -> None:
        where = f"Pod {pod['metadata']['name']} in StatefulSet {stateful_set['metadata']['name']}"
        text = f"Create Claim {claim} {where} success"
        if failure is not None:
            text = f"Create Claim {claim} for {where} failed error: {failure}"
        self._event(stateful_set, "create", text, failure)

    def _event(self, stateful_set: Object, verb: str, text: str, failure: Exception | None) -> None:
        if failure is None:
            self._recorder.event(stateful_set, "Normal", f"Successful{verb.title()}", text)
        else:
            self._recorder.event(stateful_set, "Warning", f"Failed{verb.title()}", text)
