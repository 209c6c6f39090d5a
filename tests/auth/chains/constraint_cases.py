"""Constraints of names and policies, and the user that kube-apiserver 1.37.2 takes the client for (None: 401)."""

from typing import Final

from tests.auth.chains.shapes import Chain, extension, mapped, own, policy_limit, rooted, under
from tests.auth.chains.writing import (
    CN,
    NULL,
    UNKNOWN,
    address,
    alternatives,
    constraints,
    directory,
    dns,
    email,
    integer,
    name,
    oid,
    policies,
    sequence,
    tlv,
    uri,
)

CASES: Final[dict[str, tuple[str | None, Chain]]] = {
    "policies critical": ("jane", own(policies(UNKNOWN, critical=True))),
    "policies twice": (None, own(policies(UNKNOWN, UNKNOWN))),
    "policies garbage": (None, own(extension(b"x", o="2.5.29.32"))),
    "policies empty": ("jane", own(policies())),
    "any policy": ("jane", own(policies("2.5.29.32.0"))),
    "policy qualifier unknown": (
        "jane",
        own(extension(sequence(sequence(oid(UNKNOWN), sequence(sequence(oid(UNKNOWN), NULL)))), o="2.5.29.32")),
    ),
    "explicit policy 0": (None, own(policy_limit(128, 0))),
    "explicit policy 0 with": ("jane", own(policy_limit(128, 0), policies(UNKNOWN))),
    "explicit 1": ("jane", own(policy_limit(128, 1))),
    "explicit noncritical": (None, own(policy_limit(128, 0, False))),
    "inhibit mapping": ("jane", own(policy_limit(129, 0))),
    "constraints empty": ("jane", own(extension(sequence(), True, "2.5.29.36"))),
    "constraints garbage": (None, own(extension(b"x", True, "2.5.29.36"))),
    "inhibit any": ("jane", own(extension(integer(0), True, "2.5.29.54"))),
    "inhibit any negative": ("jane", own(extension(integer(-1), True, "2.5.29.54"))),
    "inhibit any garbage": (None, own(extension(b"x", True, "2.5.29.54"))),
    "mapping": ("jane", own(mapped(UNKNOWN, "1.2.3.5"))),
    "mapping any": ("jane", own(mapped("2.5.29.32.0", "1.2.3.5"))),
    "mapping empty": ("jane", own(extension(sequence(), True, "2.5.29.33"))),
    "constraints on leaf": ("jane", own(constraints([dns("x.example")]))),
    "constraints on leaf that it breaks": (
        "jane",
        own(constraints([dns("x.example")]), alternatives(dns("y.example"))),
    ),
    "names: dns no san": ("jane", under(constraints([dns("a.example")]), leaf_ext=())),
    "names: dns good": ("jane", under(constraints([dns("a.example")]), leaf_ext=(alternatives(dns("x.a.example")),))),
    "names: dns itself": ("jane", under(constraints([dns("a.example")]), leaf_ext=(alternatives(dns("a.example")),))),
    "names: dns case": ("jane", under(constraints([dns("A.example")]), leaf_ext=(alternatives(dns("x.a.EXAMPLE")),))),
    "names: dns bad": (None, under(constraints([dns("a.example")]), leaf_ext=(alternatives(dns("b.example")),))),
    "names: dns dot": ("jane", under(constraints([dns(".a.example")]), leaf_ext=(alternatives(dns("x.a.example")),))),
    "names: dns dot itself": (
        None,
        under(constraints([dns(".a.example")]), leaf_ext=(alternatives(dns("a.example")),)),
    ),
    "names: dns excluded": (
        None,
        under(constraints((), [dns("a.example")]), leaf_ext=(alternatives(dns("x.a.example")),)),
    ),
    "names: dns excluded wildcard": (
        None,
        under(constraints((), [dns("x.a.example")]), leaf_ext=(alternatives(dns("*.a.example")),)),
    ),
    "names: dns permitted wildcard": (
        None,
        under(constraints([dns("x.a.example")]), leaf_ext=(alternatives(dns("*.a.example")),)),
    ),
    "names: dns excluded all": (None, under(constraints((), [dns("")]), leaf_ext=(alternatives(dns("a")),))),
    "names: dns permitted empty": ("jane", under(constraints([dns("")]), leaf_ext=(alternatives(dns("a")),))),
    "names: dns noncritical": (
        None,
        under(constraints([dns("a.example")], critical=False), leaf_ext=(alternatives(dns("b.example")),)),
    ),
    "names: dns permitted other kind": (
        "jane",
        under(constraints([dns("a.example")]), leaf_ext=(alternatives(email("a@b.c")),)),
    ),
    "names: email host": ("jane", under(constraints([email("b.c")]), leaf_ext=(alternatives(email("a@b.c")),))),
    "names: email host sub": ("jane", under(constraints([email("b.c")]), leaf_ext=(alternatives(email("a@x.b.c")),))),
    "names: email dot": ("jane", under(constraints([email(".b.c")]), leaf_ext=(alternatives(email("a@x.b.c")),))),
    "names: email whole": ("jane", under(constraints([email("a@b.c")]), leaf_ext=(alternatives(email("a@B.c")),))),
    "names: email whole case": (None, under(constraints([email("A@b.c")]), leaf_ext=(alternatives(email("a@b.c")),))),
    "names: email bad": (None, under(constraints([email("b.c")]), leaf_ext=(alternatives(email("a@d.e")),))),
    "names: email malformed": (None, under(constraints([email("b.c")]), leaf_ext=(alternatives(email("nothing")),))),
    "names: email quoted": ("jane", under(constraints([email("b.c")]), leaf_ext=(alternatives(email('"a b"@b.c')),))),
    "names: uri good": (
        "jane",
        under(constraints([uri(".a.example")]), leaf_ext=(alternatives(uri("https://x.a.example/")),)),
    ),
    "names: uri host": (
        "jane",
        under(constraints([uri("a.example")]), leaf_ext=(alternatives(uri("https://a.example/")),)),
    ),
    "names: uri host sub": (
        "jane",
        under(constraints([uri("a.example")]), leaf_ext=(alternatives(uri("https://x.a.example/")),)),
    ),
    "names: uri bad": (
        None,
        under(constraints([uri("a.example")]), leaf_ext=(alternatives(uri("https://b.example/")),)),
    ),
    "names: uri ip": (
        None,
        under(constraints((), [uri("a.example")]), leaf_ext=(alternatives(uri("https://1.2.3.4/")),)),
    ),
    "names: uri no host": (None, under(constraints((), [uri("a.example")]), leaf_ext=(alternatives(uri("urn:x")),))),
    "names: uri port": (
        "jane",
        under(constraints([uri("a.example")]), leaf_ext=(alternatives(uri("https://a.example:80/")),)),
    ),
    "names: uri user": (
        "jane",
        under(constraints([uri("a.example")]), leaf_ext=(alternatives(uri("https://u@a.example/")),)),
    ),
    "names: ip good": (
        "jane",
        under(constraints([address(10, 0, 0, 0, 255, 0, 0, 0)]), leaf_ext=(alternatives(address(10, 1, 1, 1)),)),
    ),
    "names: ip bad": (
        None,
        under(constraints([address(10, 0, 0, 0, 255, 0, 0, 0)]), leaf_ext=(alternatives(address(11, 1, 1, 1)),)),
    ),
    "names: ip6 against 4": (
        None,
        under(constraints([address(10, 0, 0, 0, 255, 0, 0, 0)]), leaf_ext=(alternatives(address(*range(16))),)),
    ),
    "names: ip excluded all": (
        None,
        under(constraints((), [address(0, 0, 0, 0, 0, 0, 0, 0)]), leaf_ext=(alternatives(address(1, 1, 1, 1)),)),
    ),
    "names: ip mask odd": (
        None,
        under(constraints([address(10, 0, 0, 0, 255, 0, 255, 0)]), leaf_ext=(alternatives(address(10, 1, 0, 1)),)),
    ),
    "names: ip mask odd without": (None, under(constraints([address(10, 0, 0, 0, 255, 0, 255, 0)]), leaf_ext=())),
    "names: ip host bits": (
        "jane",
        under(constraints([address(10, 0, 0, 1, 255, 0, 0, 0)]), leaf_ext=(alternatives(address(10, 0, 0, 5)),)),
    ),
    "names: ip 5 bytes": (None, under(constraints([address(10, 0, 0, 0, 255)]), leaf_ext=())),
    "names: directory critical": (None, under(constraints([directory(name("jane"))]), leaf_ext=())),
    "names: directory noncritical": (
        "jane",
        under(constraints([directory(name("other"))], critical=False), leaf_ext=()),
    ),
    "names: directory excluded critical": (None, under(constraints((), [directory(name("other"))]), leaf_ext=())),
    "names: directory excluded noncritical": (
        "jane",
        under(constraints((), [directory(name("jane"))], critical=False), leaf_ext=()),
    ),
    "names: directory and dns critical": (
        None,
        under(constraints([directory(name("jane")), dns("a.example")]), leaf_ext=()),
    ),
    "names: other critical": (None, under(constraints([tlv(0xA0, oid(UNKNOWN), tlv(0xA0, NULL))]), leaf_ext=())),
    "names: registered noncritical": ("jane", under(constraints([tlv(136, b"*\x03")], critical=False), leaf_ext=())),
    "names: empty": (None, under(constraints(), leaf_ext=())),
    "names: empty noncritical": (None, under(constraints(critical=False), leaf_ext=())),
    "names: garbage": (None, under(extension(b"x", True, "2.5.29.30"), leaf_ext=())),
    "names: minimum": (
        "jane",
        under(
            extension(sequence(tlv(0xA0, sequence(dns("a.example"), tlv(128, b"\x01")))), True, "2.5.29.30"),
            leaf_ext=(),
        ),
    ),
    "names: dns malformed": (None, under(constraints([dns("a..b")]), leaf_ext=())),
    "names: dns nonascii": (None, under(constraints([dns("ä")]), leaf_ext=())),
    "names: dns space": (None, under(constraints([dns("a b")]), leaf_ext=())),
    "names: cn as host": ("jane", under(constraints([dns("a.example")]), leaf_ext=())),
    "names: email constraint malformed": ("jane", under(constraints([email("a@@b")]), leaf_ext=())),
    "names: uri constraint ip": (None, under(constraints([uri("1.2.3.4")]), leaf_ext=())),
    "names: dns san malformed": (None, under(constraints([dns("a.example")]), leaf_ext=(alternatives(dns("a b")),))),
    "names: dns san dot end": (
        None,
        under(constraints([dns("a.example")]), leaf_ext=(alternatives(dns("a.example.")),)),
    ),
    "names: dns both": (
        "jane",
        under(constraints([dns("a.example")], [dns("x.a.example")]), leaf_ext=(alternatives(dns("y.a.example")),)),
    ),
    "names: email cn": ("jane", under(constraints([email("b.c")]), leaf_ext=())),
    "names: dns empty san": (None, under(constraints([dns("a.example")]), leaf_ext=(alternatives(dns("")),))),
    "names: permitted empty list": (None, under(extension(sequence(tlv(0xA0)), True, "2.5.29.30"), leaf_ext=())),
    "names: cn host": ("b.example", under(constraints([dns("a.example")]), leaf_how={"subject": name("b.example")})),
    "names: cn email": (
        "jane",
        under(
            constraints([email("b.c")]),
            leaf_how={
                "subject": sequence(
                    tlv(49, sequence(oid("1.2.840.113549.1.9.1"), tlv(22, b"x@d.e"))),
                    tlv(49, sequence(oid(CN), tlv(12, b"jane"))),
                )
            },
        ),
    ),
    "chain explicit": (None, under(policy_limit(128, 0))),
    "chain explicit both": ("jane", under(policy_limit(128, 0), policies(UNKNOWN), leaf_ext=(policies(UNKNOWN),))),
    "chain explicit any": ("jane", under(policy_limit(128, 0), policies("2.5.29.32.0"), leaf_ext=(policies(UNKNOWN),))),
    "chain explicit other": (None, under(policy_limit(128, 0), policies(UNKNOWN), leaf_ext=(policies("1.2.3.5"),))),
    "chain explicit inhibit": (
        "jane",
        under(
            policy_limit(128, 0),
            policies("2.5.29.32.0"),
            extension(integer(0), True, "2.5.29.54"),
            leaf_ext=(policies(UNKNOWN),),
        ),
    ),
    "chain explicit leaf without": (None, under(policy_limit(128, 0), policies(UNKNOWN))),
    "chain explicit 1": (None, under(policy_limit(128, 1))),
    "chain explicit 5": ("jane", under(policy_limit(128, 5))),
    "chain mapping": (
        "jane",
        under(policy_limit(128, 0), policies(UNKNOWN), mapped(UNKNOWN, "1.2.3.5"), leaf_ext=(policies("1.2.3.5"),)),
    ),
    "chain mapping inhibited": (
        "jane",
        under(
            extension(sequence(tlv(128, b"\x00"), tlv(129, b"\x00")), True, "2.5.29.36"),
            policies(UNKNOWN),
            mapped(UNKNOWN, "1.2.3.5"),
            leaf_ext=(policies("1.2.3.5"),),
        ),
    ),
    "chain mapping any": (None, under(policies(UNKNOWN), mapped("2.5.29.32.0", UNKNOWN))),
    "root explicit": ("jane", rooted("ex", policy_limit(128, 0))),
    "root explicit with": (
        "jane",
        rooted("exw", policy_limit(128, 0), policies(UNKNOWN), leaf_ext=(policies(UNKNOWN),)),
    ),
    "root policies other": (
        "jane",
        rooted("exo", policy_limit(128, 0), policies(UNKNOWN), leaf_ext=(policies("1.2.3.5"),)),
    ),
    "chain policies twice": (None, under(policies(UNKNOWN, UNKNOWN))),
    "chain noncritical explicit": (None, under(policy_limit(128, 0, False))),
    "names: excl *.b against a": (
        "jane",
        under(constraints((), [dns("a.example")]), leaf_ext=(alternatives(dns("*.b.example")),)),
    ),
    "names: excl * deep constraint": (
        "jane",
        under(constraints((), [dns("y.x.a.example")]), leaf_ext=(alternatives(dns("*.a.example")),)),
    ),
    "names: excl *.a against x.b.example": (
        "jane",
        under(constraints((), [dns("x.b.example")]), leaf_ext=(alternatives(dns("*.a.example")),)),
    ),
    "names: excl *.b against dot": (
        None,
        under(constraints((), [dns(".a.example")]), leaf_ext=(alternatives(dns("*.a.example")),)),
    ),
    "names: excl *.a.b against c.example": (
        "jane",
        under(constraints((), [dns("c.example")]), leaf_ext=(alternatives(dns("*.a.b.example")),)),
    ),
    "names: excl * case": (
        None,
        under(constraints((), [dns("x.a.EXAMPLE")]), leaf_ext=(alternatives(dns("*.A.example")),)),
    ),
    "names: excl * tld": (None, under(constraints((), [dns("x.example")]), leaf_ext=(alternatives(dns("*.example")),))),
    "names: excl *.a.example against example": (
        None,
        under(constraints((), [dns("example")]), leaf_ext=(alternatives(dns("*.a.example")),)),
    ),
    "names: email excluded good": (
        "jane",
        under(constraints((), [email("b.c")]), leaf_ext=(alternatives(email("a@d.c")),)),
    ),
    "names: email other kind malformed": (
        None,
        under(constraints([dns("a.example")]), leaf_ext=(alternatives(dns("a.example"), email("nothing")),)),
    ),
    "names: dns other kind malformed": (None, under(constraints([email("b.c")]), leaf_ext=(alternatives(dns("a b")),))),
    "names: uri other kind ip": (
        None,
        under(constraints([dns("a.example")]), leaf_ext=(alternatives(uri("https://1.2.3.4/")),)),
    ),
    "names: email noncase domain": (
        "jane",
        under(constraints([email("a@B.C")]), leaf_ext=(alternatives(email("a@b.c")),)),
    ),
    "names: email quoted local": (
        "jane",
        under(constraints([email("a@b.c")]), leaf_ext=(alternatives(email('"a"@b.c')),)),
    ),
    "names: email quote escape": (
        "jane",
        under(constraints([email("b.c")]), leaf_ext=(alternatives(email('"a\\"b"@b.c')),)),
    ),
    "names: email dots": (None, under(constraints([email("b.c")]), leaf_ext=(alternatives(email("a..b@b.c")),))),
    "names: email two ats": (None, under(constraints([email("b.c")]), leaf_ext=(alternatives(email("a@b@b.c")),))),
    "names: email empty domain": (
        "jane",
        under(constraints((), [email("b.c")]), leaf_ext=(alternatives(email("a@")),)),
    ),
    "names: uri userinfo ip": (
        None,
        under(constraints((), [uri("b.c")]), leaf_ext=(alternatives(uri("https://[::1]:80/")),)),
    ),
    "names: uri case": (
        "jane",
        under(constraints([uri("A.example")]), leaf_ext=(alternatives(uri("https://a.EXAMPLE/")),)),
    ),
    "names: uri percent host": (
        None,
        under(constraints([uri("a.example")]), leaf_ext=(alternatives(uri("https://a.example%25/")),)),
    ),
    "names: ip 6": (
        "jane",
        under(
            constraints([address(*[32, 1] + [0] * 14, *[255, 255] + [0] * 14)]),
            leaf_ext=(alternatives(address(*[32, 1] + [9] * 14)),),
        ),
    ),
    "policy any only when inhibited": (
        None,
        under(
            policy_limit(128, 0),
            policies(UNKNOWN),
            extension(integer(0), True, "2.5.29.54"),
            leaf_ext=(policies("2.5.29.32.0"),),
        ),
    ),
    "policy leaf any": ("jane", under(policy_limit(128, 0), policies(UNKNOWN), leaf_ext=(policies("2.5.29.32.0"),))),
    "policy explicit 0 then inhibit any leaf": (
        None,
        under(
            policy_limit(128, 0),
            policies("2.5.29.32.0"),
            extension(integer(0), True, "2.5.29.54"),
            leaf_ext=(policies("2.5.29.32.0"),),
        ),
    ),
    "policy mapped away": (
        None,
        under(policy_limit(128, 0), policies(UNKNOWN), mapped(UNKNOWN, "1.2.3.5"), leaf_ext=(policies(UNKNOWN),)),
    ),
    "policy mapping any parent": (
        "jane",
        under(
            policy_limit(128, 0), policies("2.5.29.32.0"), mapped(UNKNOWN, "1.2.3.5"), leaf_ext=(policies("1.2.3.5"),)
        ),
    ),
    "policy mapped from any to any": (
        None,
        under(policy_limit(128, 0), policies(UNKNOWN), mapped(UNKNOWN, "2.5.29.32.0"), leaf_ext=(policies("1.2.3.9"),)),
    ),
    "names: urn other kind": (None, under(constraints([dns("a.example")]), leaf_ext=(alternatives(uri("urn:x")),))),
    "names: excl *.a against *": (
        None,
        under(constraints((), [dns("b.a.example")]), leaf_ext=(alternatives(dns("*.b.a.example")),)),
    ),
    "names: excl * alone": ("jane", under(constraints((), [dns("example")]), leaf_ext=(alternatives(dns("*")),))),
    "names: excl *. and one": (
        None,
        under(constraints((), [dns(".b.example")]), leaf_ext=(alternatives(dns("*.b.example")),)),
    ),
    "policy mapped twice": (
        "jane",
        under(
            policy_limit(128, 0),
            policies(UNKNOWN),
            extension(
                sequence(sequence(oid(UNKNOWN), oid("1.2.3.5")), sequence(oid(UNKNOWN), oid("1.2.3.6"))),
                True,
                "2.5.29.33",
            ),
            leaf_ext=(policies("1.2.3.6"),),
        ),
    ),
    "explicit negative": ("jane", under(extension(sequence(tlv(128, b"\xff")), True, "2.5.29.36"))),
    "inhibit any negative in chain": (
        "jane",
        under(
            policy_limit(128, 0),
            policies("2.5.29.32.0"),
            extension(integer(-1), True, "2.5.29.54"),
            leaf_ext=(policies("2.5.29.32.0"),),
        ),
    ),
}
