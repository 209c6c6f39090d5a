"""The checks of the harness that disturbs servers: each finds what is wrong with a history, and nothing in a sound one."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.robustness.checks import reads, store, watches
from conformance.robustness.checks.every import CHECKS, problems
from conformance.robustness.history import Content, History, Logged, Read, Scope, Seen, Stored, Watch, Write

FIRST = Content("v1", "", "red", "u1")
SECOND = Content("v2", "", "blue", "u1")
MARKED = Content("v2", "m1", "blue", "u1")
EVENT = Content("e1", "", "red", "u2")
A, B = "configmaps/a", "events/b"
NOTHING = Content()
ALL, RED, ONE = Scope("configmaps"), Scope("configmaps", color="red"), Scope("configmaps", name="a")


def logged(revision: int, name: str = "", content: Content = NOTHING, previous: int = 0, **more: Any) -> Logged:
    return Logged(revision, name, content, previous, more.pop("deleted", False), **more)


def sound() -> History:
    """a is made at 11, changed at 13 and 14, and deleted at 15, where etcd also deletes the event b, which was made at 12."""
    writes = [
        Write("1", 0, "create", A, Content("v1", "", "red", None), 0, 0.0, 1.0, "done", 201, 11, FIRST),
        Write("1", 0, "create", B, Content("e1", "", "red", None), 0, 1.1, 1.2, "done", 201, 12, EVENT),
        Write("1", 0, "update", A, Content("v2", "", "blue", None), 11, 2.0, 3.0, "done", 200, 13, SECOND),
        Write("2", 1, "update", A, Content("v3", "", "red", None), 11, 2.0, 3.1, "refused", 409),
        Write("2", 1, "patch", A, Content(None, "m1", None, None), None, 3.5, 3.8, "done", 200, 14, MARKED),
        Write("2", 1, "delete", A, MARKED, 14, 4.0, 5.0, "done", 200),
        Write("2", 1, "update", A, Content("v5", "", "red", None), 14, 5.0, 5.1, "refused", 404),
        Write("1", 0, "create", A, Content("v4", "", "red", None), 0, 6.0),
    ]
    log = [
        logged(11, A, FIRST),
        logged(12, B, EVENT, has_lease=True),
        logged(13, A, SECOND, 11),
        logged(14, A, MARKED, 13),
        logged(15, A, MARKED, 14, deleted=True),
        logged(15, B, EVENT, 12, deleted=True),
        logged(16),
    ]
    read = [
        Read("3", 0, ALL, "newest", 0, 1.5, 1.6, 12, {A: Stored(11, FIRST)}, pages=[12, 12]),
        Read("3", 0, ALL, "exact", 13, 3.2, 3.3, 13, {A: Stored(13, SECOND)}),
        Read("3", 0, RED, "not older", 13, 3.2, 3.3, 13, {}),
        Read("3", 0, ONE, "newest", 0, 3.2, 3.3, 0, {A: Stored(13, SECOND)}, is_get=True),
        Read("3", 0, ALL, "newest", 0, 5.5, 5.6, 15, {}),
    ]
    watched = [
        Watch(
            "4",
            0,
            ALL,
            10,
            [
                Seen("ADDED", 11, A, FIRST, 1.1),
                Seen("BOOKMARK", 12, "", NOTHING, 1.4),
                Seen("MODIFIED", 13, A, SECOND, 2.5),
            ],
        ),
        Watch("4", 0, ALL, 13, [Seen("MODIFIED", 14, A, MARKED, 3.9), Seen("DELETED", 15, A, MARKED, 5.2)]),
        Watch("5", 1, RED, 10, [Seen("ADDED", 11, A, FIRST, 1.1), Seen("DELETED", 13, A, FIRST, 2.5)]),
        Watch("6", 1, Scope("events"), 10, [Seen("ADDED", 12, B, EVENT, 1.3), Seen("DELETED", 15, B, EVENT, 4.9)]),
    ]
    return History(10, writes, read, watched, log, expiry=3.0)


def test_a_sound_history_has_no_problems() -> None:
    assert problems(sound()) == []


def gap(history: History) -> None:
    history.log = [each for each in history.log if each.revision != 12]


def lost(history: History) -> None:
    history.log = [*history.log[:3], *history.log[4:]]


def lost_deletion(history: History) -> None:
    history.log = history.log[:4]


def twice(history: History) -> None:
    history.log = [*history.log, logged(17, A, SECOND)]


def by_nobody(history: History) -> None:
    history.log = [*history.log, logged(17, A, replace(SECOND, value="v9"))]


def refused_but_done(history: History) -> None:
    history.log = [*history.log, logged(17, A, Content("v3", "", "red", "u3"))]


def deleted_by_nobody(history: History) -> None:
    history.writes = [write for write in history.writes if write.verb != "delete"]


def expired_without_a_lease(history: History) -> None:
    history.log[1].has_lease = False


def expired_early(history: History) -> None:
    history.watches[3].events[1].at = 2.0


def blind(history: History) -> None:
    history.writes[2].expected = 10


def replaced_unseen(history: History) -> None:
    history.log[2].previous = 10


def overwritten(history: History) -> None:
    history.log[3].content = replace(MARKED, value="v1")


def false_conflict(history: History) -> None:
    history.writes[3].expected, history.writes[3].began, history.writes[3].ended = 13, 3.2, 3.3


def false_absence(history: History) -> None:
    history.writes[6].began, history.writes[6].ended = 1.5, 1.6


def invalid(history: History) -> None:
    history.writes[3].status = 422


def same_uid(history: History) -> None:
    history.log[1].content = replace(EVENT, uid="u1")


def stale(history: History) -> None:
    history.reads[4].revision, history.reads[4].objects = 12, {A: Stored(11, FIRST)}


def torn(history: History) -> None:
    history.reads[4].objects = {A: Stored(13, SECOND)}


def older_than_asked(history: History) -> None:
    history.reads[2].asked = 14


def inexact(history: History) -> None:
    history.reads[1].asked = 12


def changing_pages(history: History) -> None:
    history.reads[0].pages[1] = 13


def stale_object(history: History) -> None:
    history.reads[3].objects = {A: Stored(11, FIRST)}


def invented_object(history: History) -> None:
    history.reads[3].objects = {A: Stored(13, FIRST)}


def read_too_early(history: History) -> None:
    history.reads[1].ended = 1.9


def two_of_one_revision(history: History) -> None:
    history.writes[0].revision = 13


def two_names_of_one_revision(history: History) -> None:
    history.writes[1].revision = 11


def late(history: History) -> None:
    history.writes[0].revision = 20


def missing(history: History) -> None:
    history.late = ["4 has seen 12"]


def unordered(history: History) -> None:
    history.watches[0].events.reverse()


def repeated(history: History) -> None:
    history.watches[0].events.append(history.watches[0].events[-1])


def before_the_start(history: History) -> None:
    history.watches[1].start = 14


def half(history: History) -> None:
    """Revision 15 has a part in each of two objects; the watch goes on without one of them."""
    history.log = [*history.log, logged(17, A, Content("v4", "", "red", "u4"))]
    history.log[5].name, history.log[5].content, history.log[5].previous = "configmaps/b", Content(), 0
    history.log[5].deleted = False
    history.watches[1].events.append(Seen("ADDED", 17, A, Content("v4", "", "red", "u4"), 6.5))


def missed(history: History) -> None:
    history.watches[0].events.append(Seen("DELETED", 15, A, MARKED, 5.2))


def not_resumed(history: History) -> None:
    del history.watches[1].events[0]


def early_bookmark(history: History) -> None:
    history.watches[0].events[1].revision = 13
    del history.watches[0].events[2]


def not_selected(history: History) -> None:
    history.watches[2].events.append(Seen("MODIFIED", 14, A, MARKED, 3.9))


def mistaken(history: History) -> None:
    history.watches[0].events[2].type = "ADDED"


def without_its_last_state(history: History) -> None:
    history.watches[2].events[1].content = SECOND


def watched_too_early(history: History) -> None:
    history.watches[0].events[2].at = 1.9


DAMAGES: list[tuple[Callable[[History], None], Callable[..., object]]] = [
    (gap, store.revisions_are_dense),
    (two_of_one_revision, store.revisions_are_unique),
    (two_names_of_one_revision, store.revisions_are_unique),
    (lost, store.nothing_answered_is_lost),
    (lost_deletion, store.no_deletion_is_lost),
    (twice, store.nothing_happens_twice),
    (by_nobody, store.nothing_happens_unasked),
    (refused_but_done, store.nothing_happens_unasked),
    (deleted_by_nobody, store.nothing_happens_unasked),
    (expired_without_a_lease, store.leases_are_kept),
    (expired_early, store.leases_are_kept),
    (blind, store.compare_and_swap_is_honest),
    (replaced_unseen, store.compare_and_swap_is_honest),
    (overwritten, store.compare_and_swap_is_honest),
    (false_conflict, store.refusals_are_true),
    (false_absence, store.refusals_are_true),
    (invalid, store.refusals_are_true),
    (same_uid, store.uids_are_unique),
    (late, store.writes_keep_the_order_of_time),
    (missing, store.everything_arrives),
    (stale, reads.lists_are_as_new_as_promised),
    (older_than_asked, reads.lists_are_as_new_as_promised),
    (inexact, reads.lists_are_as_new_as_promised),
    (torn, reads.lists_show_the_state_of_their_revision),
    (changing_pages, reads.pages_are_of_one_revision),
    (stale_object, reads.objects_are_as_new_as_promised),
    (invented_object, reads.objects_are_as_new_as_promised),
    (read_too_early, reads.nothing_is_read_before_it_was_sent),
    (unordered, watches.watches_are_ordered),
    (repeated, watches.watches_are_unique),
    (before_the_start, watches.watches_are_unique),
    (half, watches.watches_are_atomic),
    (missed, watches.watches_are_reliable),
    (not_resumed, watches.watches_are_resumable),
    (early_bookmark, watches.watches_are_bookmarkable),
    (not_selected, watches.watches_are_filtered),
    (mistaken, watches.creations_are_shown_as_such),
    (without_its_last_state, watches.states_and_previous_states_are_right),
    (watched_too_early, watches.nothing_is_watched_before_it_was_sent),
]


@pytest.mark.parametrize(("damage", "check"), DAMAGES)
def test_each_damage_is_found(damage: Callable[[History], None], check: Callable[..., object]) -> None:
    history = sound()
    damage(history)
    assert getattr(check, "__name__", "") in {problem.partition(":")[0] for problem in problems(history)}


def test_each_check_has_found_something() -> None:
    assert {check for _, check in DAMAGES} == {*CHECKS}
