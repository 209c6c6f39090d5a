"""The graph of owners and dependents, from the informers' events. Pure.

An owner that no informer has seen yet has a virtual node, under the identity in a dependent's reference: the attempt
to delete it finds
out whether it exists. Upstream: pkg/controller/garbagecollector/{graph,graph_builder,uid_cache}.go.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from fakeapiserver.apimachinery.meta import Object

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_CACHE_SIZE: Final = 500
# An entry of metadata.ownerReferences.
OwnerReference = dict[str, Any]


class ObjectReference(NamedTuple):
    """An object's coordinates, in the order in which upstream tries identities that dependents disagree about.

    `namespace` is "" for cluster-scoped objects.
    """

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"[{self.api_version}/{self.kind}, namespace: {self.namespace}, name: {self.name}, uid: {self.uid}]"

    def matches(self, reference: OwnerReference) -> bool:
        """The reference names it by the same coordinates, wherever that is said."""
        return self == owner_identity(reference, self.namespace)


def owner_identity(reference: OwnerReference, namespace: str) -> ObjectReference:
    """The owner that an object in `namespace` refers to."""
    return ObjectReference(reference["kind"], reference["apiVersion"], namespace, reference["name"], reference["uid"])


class Node:
    """An object in the graph. virtual: no informer has seen it. dependents: in the order in which they came."""

    __slots__ = ("being_deleted", "deleting_dependents", "dependents", "identity", "owners", "virtual")

    def __init__(
        self,
        identity: ObjectReference,
        owners: Sequence[OwnerReference] = (),
        *,
        deleting_dependents: bool = False,
        being_deleted: bool = False,
        virtual: bool = False,
    ) -> None:
        self.identity = identity
        self.owners = owners
        self.dependents: dict[Node, None] = {}
        self.deleting_dependents = deleting_dependents
        self.being_deleted = being_deleted
        self.virtual = virtual

    def blocking_dependents(self) -> Sequence["Node"]:
        """Returns the dependents that must be deleted before this object."""
        uid = self.identity.uid
        return [
            dependent
            for dependent in self.dependents
            if any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in dependent.owners)
        ]


class AbsentOwners:
    """The owners of which the server said last that they don't exist; of `size` uids."""

    def __init__(self, size: int = _CACHE_SIZE) -> None:
        self._size = size
        self._known: OrderedDict[str, set[ObjectReference]] = OrderedDict()

    def add(self, reference: ObjectReference) -> None:
        self._known.setdefault(reference.uid, set()).add(reference)
        self._known.move_to_end(reference.uid)
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def discard(self, uid: str) -> None:
        """Forgets that an owner was absent, because it was seen: a server may restore an earlier state."""
        self._known.pop(uid, None)

    def __contains__(self, reference: ObjectReference) -> bool:
        return reference in self._known.get(reference.uid, ())


class Attempts(Protocol):
    """Receives the deletions and orphanings that the graph proposes."""

    def attempt_to_delete(self, node: Node) -> None:
        """Perhaps it may go."""

    def attempt_to_delete_later(self, node: Node) -> None:
        """The same, rate-limited."""

    def attempt_to_orphan(self, node: Node) -> None:
        """Its dependents are to lose it, then it may go."""

    def invalid_owner_namespace(self, dependent: ObjectReference, owner: ObjectReference) -> None:
        """The dependent names an owner that is in another namespace."""


class DependencyGraph:
    """Nodes by uid."""

    def __init__(self, attempts: Attempts) -> None:
        self.nodes: dict[str, Node] = {}
        self.absent_owners = AbsentOwners()
        self._attempts = attempts

    # ------------------------------------------------------------------------- events

    def changed(self, api_version: str, kind: str, old: Object | None, new: Object) -> None:
        """An object is there (`old` None), or has changed."""
        metadata = new["metadata"]
        owners: Sequence[OwnerReference] = metadata.get("ownerReferences") or ()
        node = self.nodes.get(metadata["uid"])
        if node is None:
            being_deleted = bool(metadata.get("deletionTimestamp"))
            node = Node(
                _identity(api_version, kind, metadata),
                owners,
                deleting_dependents=being_deleted and FOREGROUND in (metadata.get("finalizers") or ()),
                being_deleted=being_deleted,
            )
            self.nodes[node.identity.uid] = node
            self.absent_owners.discard(node.identity.uid)
            self._add_dependent_to_owners(node, owners)
        else:
            if node.virtual:
                self._observe(node, _identity(api_version, kind, metadata))
            if owners != node.owners:
                self._change_owners(node, owners)
            if metadata.get("deletionTimestamp"):
                node.being_deleted = True
        self._process_transitions(node, old["metadata"] if old is not None else None, metadata)

    def deleted(self, api_version: str, kind: str, obj: Object) -> None:
        """An object is gone."""
        identity = _identity(api_version, kind, obj["metadata"])
        node = self.nodes.get(identity.uid)
        if node is None:
            return
        if node.virtual:
            self._observe(node, identity)
        self._remove(node, identity)

    def found_absent(self, identity: ObjectReference) -> None:
        """The server says that nothing has this identity (upstream: a virtual delete event)."""
        node = self.nodes.get(identity.uid)
        if node is None:
            return
        if node.virtual:
            matching, others = _partition(node.dependents, identity)
            if others:  # who say that it is somewhere else
                self._owner_is_absent(identity, matching)
                alternative = _alternative_identity(others, identity) if node.identity == identity else None
                if alternative is not None:
                    node.identity = alternative
                    self._attempts.attempt_to_delete_later(node)
                return
        elif node.identity != identity:  # it was seen, elsewhere
            self._owner_is_absent(identity, _partition(node.dependents, identity)[0])
            return
        self._remove(node, identity)

    # ------------------------------------------------------------------------- inside

    def _owner_is_absent(self, identity: ObjectReference, dependents: Collection[Node]) -> None:
        if dependents:
            self.absent_owners.add(identity)
            for dependent in dependents:
                self._attempts.attempt_to_delete(dependent)

    def _remove(self, node: Node, identity: ObjectReference) -> None:
        del self.nodes[node.identity.uid]
        self._remove_dependent_from_owners(node, node.owners)
        self._owner_is_absent(identity, node.dependents)
        for reference in node.owners:
            owner = self.nodes.get(reference["uid"])
            if owner is not None and owner.deleting_dependents:
                self._attempts.attempt_to_delete(owner)  # which may have waited for this one only

    def _observe(self, node: Node, identity: ObjectReference) -> None:
        """A virtual node turns out to exist. Dependents that gave it other coordinates are looked at: their owner may not exist.
        Those that come later are found by `_add_dependent_to_owners`."""
        if identity != node.identity:
            for dependent in _partition(node.dependents, identity)[1]:
                if identity.namespace and dependent.identity.namespace != identity.namespace:
                    self._report_invalid_namespace(dependent, identity.uid)
                self._attempts.attempt_to_delete(dependent)
            node.identity = identity
        node.virtual = False
        self.absent_owners.discard(identity.uid)

    def _add_dependent_to_owners(self, node: Node, owners: Iterable[OwnerReference]) -> None:
        doubtful = False
        for reference in owners:
            owner = self.nodes.get(reference["uid"])
            if owner is None:
                owner = Node(owner_identity(reference, node.identity.namespace), virtual=True)
                self.nodes[reference["uid"]] = owner
                owner.dependents[node] = None
                self._attempts.attempt_to_delete(owner)
                continue
            owner.dependents[node] = None
            if doubtful:
                continue
            namespace = owner.identity.namespace
            if namespace and namespace != node.identity.namespace:
                if not owner.virtual:
                    self._report_invalid_namespace(node, reference["uid"])
                doubtful = True
            elif not owner.identity.matches(reference):
                doubtful = True
            elif not namespace and node.identity.namespace and owner.virtual:
                # perhaps an owner of a namespaced kind that something cluster-scoped had named
                doubtful = True
        if doubtful:
            self._attempts.attempt_to_delete(node)

    def _remove_dependent_from_owners(self, node: Node, owners: Iterable[OwnerReference]) -> None:
        for reference in owners:
            owner = self.nodes.get(reference["uid"])
            if owner is not None:
                owner.dependents.pop(node, None)

    def _change_owners(self, node: Node, owners: Sequence[OwnerReference]) -> None:
        before = {reference["uid"]: reference for reference in node.owners}
        after = {reference["uid"]: reference for reference in owners}
        removed = [reference for uid, reference in before.items() if uid not in after]
        for uid, reference in before.items():
            if reference.get("blockOwnerDeletion") and not after.get(uid, {}).get("blockOwnerDeletion"):
                owner = self.nodes.get(uid)
                if owner is not None:
                    self._attempts.attempt_to_delete(owner)  # which may have waited for this one only
        node.owners = owners
        self._add_dependent_to_owners(node, [reference for uid, reference in after.items() if uid not in before])
        self._remove_dependent_from_owners(node, removed)

    def _process_transitions(self, node: Node, old: Object | None, new: Object) -> None:
        if _deletion_starts_with(ORPHAN, old, new):
            self._attempts.attempt_to_orphan(node)
        elif _deletion_starts_with(FOREGROUND, old, new):
            node.deleting_dependents = True
            for dependent in node.dependents:
                self._attempts.attempt_to_delete(dependent)
            self._attempts.attempt_to_delete(node)

    def _report_invalid_namespace(self, node: Node, uid: str) -> None:
        for reference in node.owners:
            if reference["uid"] == uid:
                identity = node.identity
                self._attempts.invalid_owner_namespace(identity, owner_identity(reference, identity.namespace))
                return


def _identity(api_version: str, kind: str, metadata: Object) -> ObjectReference:
    return ObjectReference(kind, api_version, metadata.get("namespace", ""), metadata["name"], metadata["uid"])


def _deletion_starts_with(finalizer: str, old: Object | None, new: Object) -> bool:
    return _is_deleted_with(finalizer, new) and (old is None or not _is_deleted_with(finalizer, old))


def _is_deleted_with(finalizer: str, metadata: Object) -> bool:
    return bool(metadata.get("deletionTimestamp")) and finalizer in (metadata.get("finalizers") or ())


def _partition(dependents: Iterable[Node], owner: ObjectReference) -> tuple[Sequence[Node], Sequence[Node]]:
    """Splits dependents by whether they name the owner's uid with its coordinates or with others; some may be in
    both.
    """
    matching, others = [], []
    for dependent in dependents:
        if owner.namespace and owner.namespace != dependent.identity.namespace:
            others.append(dependent)
            continue
        answers = {owner.matches(reference) for reference in dependent.owners if reference["uid"] == owner.uid}
        if True in answers:
            matching.append(dependent)
        if False in answers:
            others.append(dependent)
    return matching, others


def _alternative_identity(dependents: Iterable[Node], absent: ObjectReference) -> ObjectReference | None:
    """Returns another identity that dependents give the owner: the first after `absent`, else the first."""
    alternatives = set()
    for dependent in dependents:
        namespace = dependent.identity.namespace
        for reference in dependent.owners:
            if reference["uid"] != absent.uid:
                continue
            if absent.matches(reference) and absent.namespace in ("", namespace):
                continue
            identity = owner_identity(reference, namespace)
            if not absent.namespace and (identity.api_version, identity.kind) == (absent.api_version, absent.kind):
                identity = identity._replace(namespace="")  # the kind is known to be in no namespace
            alternatives.add(identity)
    alternatives.discard(absent)
    return min((each for each in alternatives if each > absent), default=min(alternatives, default=None))
