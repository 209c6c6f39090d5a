"""Lists: their order and prefix, pages, selections, and the revision that they show."""

import asyncio
from typing import Final

from fakeapiserver.storage.interface import Compacted, ListQuery, ResourceVersionTooLarge, StoredObject
from fakeapiserver.testing.storage_suite.pods import (
    PODS,
    SECRETS,
    MakeStorage,
    create,
    key_of,
    made,
    name_of,
    names,
    not_named,
    noted,
    refused,
    update,
    write_elsewhere,
)

_FUTURE: Final = 2**62


def after(item: StoredObject) -> str:
    """The key at which the page behind the object begins."""
    return item.key + "\0"


async def run_test_list_is_ordered_by_key_and_kept_to_its_prefix(make: MakeStorage) -> None:
    storage = await made(make)
    for name, namespace in (("b", "default"), ("a", "other"), ("a", "default"), ("c", "default-2")):
        await create(storage, name, namespace=namespace)
    assert names(await storage.list(PODS)) == ["c", "a", "b", "a"]
    assert names(await storage.list(PODS + "default/")) == ["a", "b"]
    assert (await storage.list(SECRETS)).items == []


async def run_test_list_in_pages_shows_one_state(make: MakeStorage) -> None:
    """Writes between two pages are not seen by the later one."""
    storage = await made(make)
    for name in "abcde":
        await create(storage, name)
    first = await storage.list(PODS, ListQuery(limit=2))
    assert (names(first), first.remaining, first.more) == (["a", "b"], 3, True)
    await create(storage, "bb")
    await storage.delete(key_of("d"))
    second = await storage.list(PODS, ListQuery(revision=first.revision, start=after(first.items[-1]), limit=2))
    third = await storage.list(PODS, ListQuery(revision=first.revision, start=after(second.items[-1]), limit=2))
    assert names(second) + names(third) == ["c", "d", "e"]
    assert (third.remaining, third.more) == (0, False)


async def run_test_list_at_an_older_revision(make: MakeStorage) -> None:
    storage = await made(make)
    obj = await create(storage, "a", "old")
    then = storage.revision
    await update(storage, obj, "new")
    await create(storage, "b")
    old = await storage.list(PODS, ListQuery(revision=then))
    assert (names(old), old.revision) == (["a"], then)
    assert old.items[0] == obj


async def run_test_list_selects_before_it_counts(make: MakeStorage) -> None:
    storage = await made(make)
    for i in range(6):
        await create(storage, f"p{i}", "odd" if i % 2 else "even")
    result = await storage.list(PODS, ListQuery(limit=2, predicate=noted("odd")))
    assert (names(result), result.more, result.remaining) == (["p1", "p3"], True, 4)


async def run_test_list(make: MakeStorage) -> None:
    """Whether a list is exact or at least as new as a revision, with a limit, a start or a selection."""
    storage = await made(make)
    empty = await storage.list(PODS)
    first = await create(storage, "a", "x", "first")
    then = storage.revision
    for name, note in (("b", "y"), ("c", "x"), ("d", "y")):
        last = await create(storage, name, note, "second")
    first = await update(storage, first, "z")
    now = first.mod_revision
    table = [
        (ListQuery(), "abcd", False),
        (ListQuery(limit=4), "abcd", False),
        (ListQuery(limit=5), "abcd", False),
        (ListQuery(limit=1), "a", True),
        (ListQuery(minimum_revision=0), "abcd", False),
        (ListQuery(minimum_revision=then), "abcd", False),
        (ListQuery(minimum_revision=now), "abcd", False),
        (ListQuery(minimum_revision=now, limit=3), "abc", True),
        (ListQuery(revision=empty.revision), "", False),
        (ListQuery(revision=then), "a", False),
        (ListQuery(revision=then, limit=1), "a", False),
        (ListQuery(revision=last.mod_revision - 1, limit=2), "ab", True),
        (ListQuery(revision=now, limit=2), "ab", True),
        (ListQuery(revision=now, start=after(first)), "bcd", False),
        (ListQuery(revision=then, start=after(first)), "", False),
        (ListQuery(start=after(first), limit=2), "bc", True),
        (ListQuery(start=after(last)), "", False),
        (ListQuery(predicate=noted("y")), "bd", False),
        (ListQuery(predicate=noted("y"), limit=1), "b", True),
        (ListQuery(predicate=noted("y"), limit=1, start=key_of("c", "second")), "d", False),
        (ListQuery(predicate=noted("x"), revision=then), "a", False),
        (ListQuery(predicate=noted("x")), "c", False),
        (ListQuery(predicate=noted("absent"), limit=1), "", False),
    ]
    for query, expected, more in table:
        result = await storage.list(PODS, query)
        assert ("".join(names(result)), result.more) == (expected, more), query
        assert result.revision == query.revision or (not query.revision and result.revision >= now), query
    for query in (ListQuery(revision=_FUTURE), ListQuery(minimum_revision=_FUTURE)):
        assert (await refused(ResourceVersionTooLarge, storage.list(PODS, query))).current >= now


async def run_test_consistent_list(make: MakeStorage) -> None:
    """A list is as new as any write before it, also to another resource; a list that needn't be is no older than the one before."""
    storage = await made(make)
    await create(storage, "a")
    for i in range(3):
        written = await write_elsewhere(storage, f"x{i}")
        consistent = await storage.list(f"{PODS}empty/")
        assert consistent.revision >= written.mod_revision
        cached = await storage.list(f"{PODS}empty/", ListQuery(minimum_revision=0))
        assert cached.revision >= consistent.revision
        assert (consistent.items, cached.items) == ([], [])
        assert storage.list_now(PODS).revision >= consistent.revision


async def run_test_get_list_recursive_prefix(make: MakeStorage) -> None:
    """A namespace or a name that begins like another isn't below it."""
    storage = await made(make)
    for name, namespace in (("foo", "test-ns"), ("foobar", "test-ns"), ("baz", "test-ns2")):
        last = await create(storage, name, namespace=namespace)
    for query in (ListQuery(), ListQuery(revision=last.mod_revision), ListQuery(minimum_revision=0)):
        for prefix, expected in (
            (PODS, ["foo", "foobar", "baz"]),
            (f"{PODS}test-ns/", ["foo", "foobar"]),
            (f"{PODS}test-ns/foo/", []),
            (f"{PODS}test/", []),
            ("/registry/pod/", []),
            ("/registry/podsecurity/", []),
        ):
            assert names(await storage.list(prefix, query)) == expected, (prefix, query)


async def run_test_list_continuation(make: MakeStorage) -> None:
    """The pages behind the first one, with a limit and without, have its revision."""
    storage = await made(make)
    for name, namespace in (("bar", "first"), ("bar", "second"), ("foo", "second")):
        last = await create(storage, name, namespace=namespace)
    first = await storage.list(PODS, ListQuery(limit=1))
    assert (first.items[0].key, first.more, first.revision) == (key_of("bar", "first"), True, last.mod_revision)
    rest = await storage.list(PODS, ListQuery(revision=first.revision, start=after(first.items[0])))
    assert ([item.key for item in rest.items], rest.more) == ([key_of("bar", "second"), last.key], False)
    second = await storage.list(PODS, ListQuery(revision=first.revision, start=after(first.items[0]), limit=1))
    assert (second.items, second.more, second.remaining) == (rest.items[:1], True, 1)
    third = await storage.list(PODS, ListQuery(revision=first.revision, start=after(second.items[0]), limit=1))
    assert (third.items, third.more) == (rest.items[1:], False)
    assert rest.revision == second.revision == third.revision == first.revision


async def run_test_list_pagination_rare_object(make: MakeStorage) -> None:
    """The only selected object of many is on the first page, though it is the last of them all; nothing follows it."""
    storage = await made(make)
    await asyncio.gather(*(create(storage, f"pod-{i:03}", str(i)) for i in range(400)))
    result = await storage.list(PODS, ListQuery(limit=1, predicate=noted("399")))
    assert (names(result), result.more) == (["pod-399"], False)


async def run_test_list_continuation_with_filter(make: MakeStorage) -> None:
    storage = await made(make)
    for namespace, name in (("1", "foo"), ("2", "bar"), ("3", "foo"), ("4", "foo")):
        await create(storage, name, namespace=namespace)
    first = await storage.list(PODS, ListQuery(limit=2, predicate=not_named("bar")))
    assert ([item.key for item in first.items], first.more) == ([key_of("foo", "1"), key_of("foo", "3")], True)
    query = ListQuery(limit=2, predicate=not_named("bar"), revision=first.revision, start=after(first.items[-1]))
    second = await storage.list(PODS, query)
    assert ([item.key for item in second.items], second.more) == ([key_of("foo", "4")], False)


async def run_test_list_inconsistent_continuation(make: MakeStorage) -> None:
    """When the revision of a first page is forgotten, the next ones go on at its end, in a newer state that they share."""
    storage = await made(make)
    for name in "abc":
        last = await create(storage, name, "old")
    first = await storage.list(PODS, ListQuery(limit=1))
    start = after(first.items[0])
    changed = await update(storage, last, "new")
    await storage.compact(changed.mod_revision)
    await refused(Compacted, storage.list(PODS, ListQuery(revision=first.revision, start=start)))
    second = await storage.list(PODS, ListQuery(start=start, limit=1))
    assert (names(second), second.more, second.revision >= changed.mod_revision) == (["b"], True, True)
    third = await storage.list(PODS, ListQuery(revision=second.revision, start=after(second.items[0]), limit=1))
    assert (third.items, third.more, third.revision) == ([changed], False, second.revision)


async def run_test_list_resource_version_match(make: MakeStorage) -> None:
    """A list at the revision of an earlier one is the same list, though objects were created while it was made."""
    storage = await made(make)

    async def create_more() -> None:
        for i in range(12):
            await create(storage, f"pod-{i:02}", "odd" if i % 2 else "even")

    creating = asyncio.ensure_future(create_more())
    results = []
    while not creating.done():
        results.append(await storage.list(PODS, ListQuery(limit=4, predicate=noted("even"))))
        await asyncio.sleep(0)
    await creating
    results.append(await storage.list(PODS, ListQuery(limit=4, predicate=noted("even"))))
    assert names(results[-1]) == ["pod-00", "pod-02", "pod-04", "pod-06"]
    for result in results:
        query = ListQuery(revision=result.revision, limit=4, predicate=noted("even"))
        again = await storage.list(PODS, query)
        assert (again.items, again.more, again.remaining) == (result.items, result.more, result.remaining)


async def run_test_list_paging(make: MakeStorage) -> None:
    """Four objects fill four pages with a limit of 1, though another object is created after the second page."""
    storage = await made(make)
    for i in range(4):
        await create(storage, f"test-{i}")
    page = await storage.list(PODS, ListQuery(limit=1))
    pages = [page]
    while page.more:
        if len(pages) == 2:
            await create(storage, "test-5")
        page = await storage.list(PODS, ListQuery(revision=page.revision, start=after(page.items[-1]), limit=1))
        pages.append(page)
    assert [names(page) for page in pages] == [["test-0"], ["test-1"], ["test-2"], ["test-3"]]


async def run_test_namespace_scoped_list(make: MakeStorage) -> None:
    """Selections in one namespace and in all of them, with pods of one name in several."""
    storage = await made(make)
    for namespace in ("t1-a", "t1-b"):
        for name, node in (("foo", "n1"), ("bar", "n2")):
            await create(storage, name, node, namespace)
    for prefix, predicate, expected in (
        (PODS, None, ["t1-a/bar", "t1-a/foo", "t1-b/bar", "t1-b/foo"]),
        (PODS, lambda item: item.key.startswith(f"{PODS}t1-b/"), ["t1-b/bar", "t1-b/foo"]),
        (PODS, noted("n1"), ["t1-a/foo", "t1-b/foo"]),
        (PODS, noted("absent"), []),
        (PODS, not_named("foo"), ["t1-a/bar", "t1-b/bar"]),
        (f"{PODS}t1-a/", None, ["t1-a/bar", "t1-a/foo"]),
        (f"{PODS}t1-a/", lambda item: item.key.startswith(f"{PODS}t1-b/"), []),
        (f"{PODS}t1-a/", noted("n1"), ["t1-a/foo"]),
        (f"{PODS}t1-a/", lambda item: name_of(item) == "foo" and item.index.labels["note"] == "n2", []),
        (f"{PODS}t1/", None, []),
    ):
        result = await storage.list(prefix, ListQuery(predicate=predicate))
        assert [item.key.removeprefix(PODS) for item in result.items] == expected
