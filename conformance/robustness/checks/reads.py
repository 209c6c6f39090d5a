"""The checks of lists and of reads of one object."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from conformance.robustness.checks.timeline import Timeline
from conformance.robustness.history import Read, Stored


def lists_show_the_state_of_their_revision(timeline: Timeline) -> Iterator[str]:
    """Whatever state was asked for: a list shows everything of one state."""
    states: dict[str, dict[str, Stored]] = defaultdict(dict)  # by resource
    changes = iter(timeline.history.log)
    logged = next(changes, None)
    for read in sorted(timeline.history.reads, key=lambda read: read.revision):
        if read.is_get or read.revision < timeline.history.since:
            continue
        while logged is not None and logged.revision <= read.revision:
            state = states[logged.name.partition("/")[0]]
            if logged.deleted:
                state.pop(logged.name, None)
            elif logged.name:
                state[logged.name] = Stored(logged.revision, logged.content)
            logged = next(changes, None)
        current = states[read.scope.resource].items()
        selected = {name: stored for name, stored in current if read.scope.selects(name, stored.content)}
        if read.objects != selected:
            yield f"{_text(read)} differs from the log: {_difference(read.objects, selected)}"


def lists_are_as_new_as_promised(timeline: Timeline) -> Iterator[str]:
    """The newest state has everything that any client knew before; the others are those that were asked for."""
    for read in timeline.history.reads:
        if read.is_get:
            continue
        if read.promise == "newest" and read.revision < (known := timeline.known_before(read.began)):
            yield f"{_text(read)} began after {known} was known"
        if read.promise == "not older" and read.revision < read.asked:
            yield f"{_text(read)} was to be not older than {read.asked}"
        if read.promise == "exact" and read.revision != read.asked:
            yield f"{_text(read)} was to be at {read.asked}"


def pages_are_of_one_revision(timeline: Timeline) -> Iterator[str]:
    for read in timeline.history.reads:
        if any(page != read.revision for page in read.pages):
            yield f"{_text(read)} has pages of {read.pages}"


def objects_are_as_new_as_promised(timeline: Timeline) -> Iterator[str]:
    """A read of one object shows a state that it had between the request and the answer; one of any state, any."""
    for read in timeline.history.reads:
        if not read.is_get:
            continue
        name = f"{read.scope.resource}/{read.scope.name}"
        stored = read.objects.get(name)
        if stored is not None:
            logged = timeline.changes.get((stored.revision, name))
            if logged is None or logged.deleted or logged.content != stored.content:
                yield f"{_text(read)} shows {stored}, but the log has {logged}"
                continue
        if read.promise == "newest":
            states = timeline.states(name, read.began, read.ended)
            revisions = [0 if state is None else state.revision for state in states]
            if (0 if stored is None else stored.revision) not in revisions:
                yield f"{_text(read)} shows {stored}, but {states[0]} was known before"


def nothing_is_read_before_it_was_sent(timeline: Timeline) -> Iterator[str]:
    """No answer shows a state whose write was sent after the answer."""
    for read in timeline.history.reads:
        for name, stored in read.objects.items():
            logged = timeline.changes.get((stored.revision, name))
            if logged is not None and timeline.began(logged) > read.ended:
                yield f"{_text(read)} shows {logged}, which was sent later"


def _text(read: Read) -> str:
    selected = " ".join(part for part in (read.scope.resource, read.scope.color, read.scope.name) if part)
    return f"the {'read' if read.is_get else 'list'} of {selected} ({read.promise}) at {read.revision} by {read.client}"


def _difference(objects: Mapping[str, Stored], state: Mapping[str, Stored]) -> str:
    names = [name for name in sorted({*objects, *state}) if objects.get(name) != state.get(name)]
    return ", ".join(f"{name} is {objects.get(name)} in place of {state.get(name)}" for name in names[:3])


CHECKS = (
    lists_show_the_state_of_their_revision,
    lists_are_as_new_as_promised,
    pages_are_of_one_revision,
    objects_are_as_new_as_promised,
    nothing_is_read_before_it_was_sent,
)
