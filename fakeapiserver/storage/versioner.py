"""Puts the revision into an object's bytes (upstream: APIObjectVersioner in k8s.io/apiserver/pkg/storage/api_object_versioner.go).

>>> stamp(b'{"metadata":{"name":"a"}}', 13, 7)
b'{"metadata":{"resourceVersion":"7","name":"a"}}'
>>> restamp(b'{"metadata":{"resourceVersion":"7","name":"a"}}', 13, 9)
b'{"metadata":{"resourceVersion":"9","name":"a"}}'
"""


def stamp(value: bytes, offset: int, revision: int) -> bytes:
    """Puts the revision into bytes at `offset`, which is within metadata, in front of another member."""
    return b'%b"resourceVersion":"%d",%b' % (value[:offset], revision, value[offset:])


def unstamped(value: bytes, offset: int) -> bytes:
    """The bytes without the revision that `stamp` has put there.

    >>> unstamped(b'{"metadata":{"resourceVersion":"7","name":"a"}}', 13)
    b'{"metadata":{"name":"a"}}'
    """
    return value[:offset] + value[value.index(b",", offset) + 1 :]


def restamp(value: bytes, offset: int, revision: int) -> bytes:
    """Replaces the revision of bytes that have one."""
    return b'%b"resourceVersion":"%d"%b' % (value[:offset], revision, value[value.index(b",", offset) :])
