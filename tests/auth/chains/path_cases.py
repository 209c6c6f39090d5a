"""Chains with several ways to a root, or with none, and the user that kube-apiserver 1.37.2 takes the client for (None: 401)."""

from dataclasses import replace
from typing import Final

from tests.auth.chains.shapes import ROOT, Chain, below, leaf, mapped, root
from tests.auth.chains.writing import (
    AUTHORITY,
    NULL,
    SERVER,
    TRUE,
    UNKNOWN,
    Certificate,
    Extension,
    alternatives,
    authority_key,
    basic,
    constraints,
    dns,
    integer,
    key_usage,
    name,
    policies,
    sequence,
    subject_key,
    tlv,
    usages,
    utc,
)

_EXPIRED: Final = utc("250201000000Z")
_MIDDLE: Final = below(ROOT, "middle")
_JANE: Final = leaf(_MIDDLE)
_STRANGER: Final = root("untrusted", key="untrusted")
_SELF_ISSUED_ROOT: Final = root("self", extensions=(basic(TRUE, integer(0)),))
_SELF_ISSUED: Final = Certificate(
    subject=_SELF_ISSUED_ROOT.subject,
    issuer=_SELF_ISSUED_ROOT.subject,
    key="selfissued",
    signer="root",
    extensions=AUTHORITY,
)
_LAST: Final = below(ROOT, "last", extensions=(basic(TRUE, integer(0)), key_usage("0000011")))
_BEYOND: Final = below(_LAST, "beyond")
_LIMITED: Final = below(ROOT, "limited", constraints([dns("a.example")]))
_OTHER_NAME: Final = below(_LIMITED, "other name", alternatives(dns("b.example")))
_CASED: Final = root("cased", subject=name("Root Case"), issuer=name("Root Case"), key="case-root")
_TWINS: Final = (root("same", key="same1-root"), root("same", key="same2-root"))
_SELF_SIGNED: Final = replace(
    leaf(ROOT, key="self-leaf", subject=name("self")), issuer=name("self"), signer="self-leaf"
)
_PINNED: Final = leaf(_STRANGER, subject=name("pinned"), key="pinned-leaf")
_GOOD: Final = below(ROOT, "cross")
_CROSSED: Final = leaf(_GOOD, alternatives(dns("b.example")))
_RIGHT_ID: Final = below(ROOT, "id", subject_key(b"right"))
_SERVERS: Final = root("servers", usages(SERVER), key="servers")
_OLD: Final = root("old", ends=_EXPIRED, key="old")
_NAMELESS: Final = root("", subject=sequence(), issuer=sequence(), key="nameless")
_NO_MAPPING: Final = Extension("2.5.29.36", sequence(tlv(0x80, b"\0"), tlv(0x81, b"\0")), True)
_UNMAPPED: Final = below(ROOT, "unmapped", policies(UNKNOWN), _NO_MAPPING)
_MAPPED: Final = below(_UNMAPPED, "mapped", policies(UNKNOWN), mapped(UNKNOWN, "1.2.3.5"))


def _issued_as(issuer: bytes) -> Chain:
    return Chain((replace(leaf(_CASED), issuer=issuer),), (_CASED,))


def _beside(*others: Certificate) -> Chain:
    return Chain((_CROSSED, *others), (ROOT,))


CASES: Final[dict[str, tuple[str | None, Chain]]] = {
    "without the authority between": (None, Chain((_JANE,), (ROOT,))),
    "with the root": ("jane", Chain((_JANE, _MIDDLE, ROOT), (ROOT,))),
    "twice the same": ("jane", Chain((_JANE, _MIDDLE, _MIDDLE), (ROOT,))),
    "with a stranger": ("jane", Chain((_JANE, _STRANGER, _MIDDLE), (ROOT,))),
    "of a stranger": (None, Chain((leaf(_STRANGER), _STRANGER), (ROOT,))),
    "self-issued below the last": (None, Chain((leaf(_SELF_ISSUED), _SELF_ISSUED), (_SELF_ISSUED_ROOT,))),
    "below the last": ("jane", Chain((leaf(_LAST), _LAST), (ROOT,))),
    "an authority below the last": (None, Chain((leaf(_BEYOND), _BEYOND, _LAST), (ROOT,))),
    "a client that is an authority below the last": ("jane", Chain((leaf(_LAST, basic(TRUE)), _LAST), (ROOT,))),
    "constraints hold for authorities": (None, Chain((leaf(_OTHER_NAME), _OTHER_NAME, _LIMITED), (ROOT,))),
    "the issuer is another kind of string": (None, _issued_as(name("Root Case", 19))),
    "the issuer is written in another case": (None, _issued_as(name("root case"))),
    "the issuer has more spaces": (None, _issued_as(name("Root  Case"))),
    "the first of two roots of a name": ("jane", Chain((leaf(_TWINS[0]),), _TWINS)),
    "the second of two roots of a name": ("jane", Chain((leaf(_TWINS[1]),), _TWINS)),
    "self-signed": (None, Chain((_SELF_SIGNED,), (ROOT,))),
    "self-signed, and trusted": ("self", Chain((_SELF_SIGNED,), (_SELF_SIGNED,))),
    "a trusted certificate of a stranger's": ("pinned", Chain((_PINNED,), (_PINNED,))),
    "a trusted authority below a stranger": ("jane", Chain((_JANE,), (_MIDDLE,))),
    "two ways, one breaks constraints": ("jane", _beside(below(ROOT, "cross", constraints([dns("a.example")])), _GOOD)),
    "two ways, the second breaks constraints": (
        "jane",
        _beside(_GOOD, below(ROOT, "cross", constraints([dns("a.example")]))),
    ),
    "two ways, one has expired": ("jane", _beside(replace(_GOOD, ends=_EXPIRED), _GOOD)),
    "two ways, one is for servers": ("jane", _beside(below(ROOT, "cross", usages(SERVER)), _GOOD)),
    "two ways, one is a stranger's": ("jane", _beside(below(_STRANGER, "cross"), _GOOD)),
    "two ways, one is no authority": ("jane", _beside(replace(_GOOD, extensions=(basic(),)), _GOOD)),
    "two ways, one has another key": ("jane", _beside(replace(_GOOD, key="another"), _GOOD)),
    "two ways, one has what nobody knows": (
        "jane",
        _beside(replace(_GOOD, extensions=(*AUTHORITY, Extension(UNKNOWN, NULL, True))), _GOOD),
    ),
    "the key's id is that of the second": (
        "jane",
        Chain((leaf(_RIGHT_ID, authority_key(b"right")), below(ROOT, "id", subject_key(b"wrong")), _RIGHT_ID), (ROOT,)),
    ),
    "the key's id is another": ("jane", Chain((leaf(_RIGHT_ID, authority_key(b"wrong")), _RIGHT_ID), (ROOT,))),
    "two roots, one is for servers": (
        "jane",
        Chain((leaf(_SERVERS),), (_SERVERS, replace(_SERVERS, extensions=AUTHORITY))),
    ),
    "two roots, one has expired": ("jane", Chain((leaf(_OLD),), (_OLD, replace(_OLD, ends=utc("450101000000Z"))))),
    "a root without a name": ("jane", Chain((leaf(_NAMELESS),), (_NAMELESS,))),
    "beside one of an unknown version": (
        None,
        Chain((leaf(ROOT), replace(_STRANGER, version=tlv(0xA0, tlv(2, b"\7")))), (ROOT,)),
    ),
    "beside one with broken names": (
        None,
        Chain((leaf(ROOT), replace(_STRANGER, extensions=(Extension("2.5.29.17", b"x"),))), (ROOT,)),
    ),
    "policies: mapping is inhibited above": (
        None,
        Chain((leaf(_MAPPED, policies("1.2.3.5")), _MAPPED, _UNMAPPED), (ROOT,)),
    ),
}
