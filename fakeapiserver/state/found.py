"""The objects in a file or folder of another cluster, and the report that says which of them were taken over."""

from collections.abc import Sequence

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object


class Found(Struct, frozen=True):
    """An object, and where it stood: a file, with `#2` for the second document of several or item of a list, or a key of etcd.

    `kind` may be missing in lists of some tools; the resource is then guessed from the last parts of `where`.
    """

    where: str
    obj: Object


class Untaken(Struct, frozen=True):
    """An object or a file that could not be taken. `name` is such as `Widget shop/left`, "" if `where` holds no object that has a name."""

    where: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.where}): {self.reason}" if self.name else f"{self.where}: {self.reason}"


class Gathered(Struct, frozen=True):
    """The objects of a source. `revision` is that of the storage they come from, 0 if it isn't known."""

    name: str
    objects: Sequence[Found]
    untaken: Sequence[Untaken] = ()
    revision: int = 0


class LoadReport(Struct, frozen=True):
    """The report about the objects of a source: which were taken.

    - `taken`: how many objects of each resource were, such as `deployments.apps`.
    - `untaken`: those that were not, with the reason.
    - `namespaces`: those that were made, since objects are in them and the source has none of that name.
    - `changed`: objects that are not as they were, with the reason.
    """

    source: str
    taken: dict[str, int] = field(default_factory=dict)
    untaken: Sequence[Untaken] = ()
    namespaces: Sequence[str] = ()
    changed: Sequence[str] = ()

    def __str__(self) -> str:
        """A line with the numbers, and then one for each thing that was made, changed or not taken."""
        total = sum(self.taken.values())
        lines = [f"{total} object{'' if total == 1 else 's'} of {self.source} loaded"]
        if self.taken:
            lines[0] += ": " + ", ".join(f"{number} {resource}" for resource, number in sorted(self.taken.items()))
        if self.namespaces:
            lines.append(f"made the namespaces {', '.join(self.namespaces)}, which it doesn't have")
        lines += [f"changed: {text}" for text in self.changed]
        lines += [f"not taken: {untaken}" for untaken in self.untaken]
        return "\n".join(lines)


def title(obj: Object) -> str:
    """`Widget shop/left`"""
    meta = obj.get("metadata")
    name, namespace = (meta.get("name"), meta.get("namespace")) if isinstance(meta, dict) else ("", "")
    return f"{obj.get('kind') or 'an object'} {f'{namespace}/' if namespace else ''}{name or ''}".rstrip()
