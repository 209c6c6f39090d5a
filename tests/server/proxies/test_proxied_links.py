"""Links of proxied pages, as a real kube-apiserver has rewritten them."""

import pytest

from fakeapiserver.server.proxies.proxied_links import Links

LINKS = Links("/p/proxy", frozenset(("10.0.0.3:80", "api:1")), "api:1")


@pytest.mark.parametrize(
    ("link", "rewritten"),
    [
        ("/abc", "/p/proxy/abc"),
        ("abc", "abc"),
        ("http://10.0.0.3:80/q/", "/p/proxy/q/"),
        ("//10.0.0.3:80/r", "/p/proxy/r"),
        ("http://api:1/q", "http://api:1/p/proxy/q"),
        ("HTTP://other/q", "http://other/q"),
        ("/p/proxy/zz", "/p/proxy/zz"),
        ("/a b%2F?x=1#f", "/p/proxy/a%20b/?x=1#f"),
        ("/a/../b//c", "/p/proxy/b/c"),
        ("mailto:a@b", "mailto:a@b"),
        ("", ""),
    ],
)
def test_links(link: str, rewritten: str) -> None:
    assert LINKS.rewritten(link) == rewritten


def test_no_url() -> None:
    with pytest.raises(ValueError, match="missing protocol scheme"):
        LINKS.rewritten(":::")


@pytest.mark.parametrize(
    ("page", "rewritten"),
    [
        (b"<a HREF=/x?a=b>t</a>", b'<a href="/p/proxy/x?a=b">t</a>'),
        (b'<A href="rel&amp;x">r</A>', b'<a href="rel&amp;x">r</A>'),
        (b"<IMG src='/p q' alt=\"1 & 2\"/>", b'<img src="/p/proxy/p%20q" alt="1 &amp; 2"/>'),
        (b'<script>a<b "<a href=/z>"</script>', b'<script>a<b "<a href=/z>"</script>'),
        (b'<!-- <a href="/c"> --><a href=:::>', b'<!-- <a href="/c"> --><a href=":::">'),
        (b"<!--><a href=/x><!DOCTYPE html>", b'<!--><a href="/p/proxy/x"><!DOCTYPE html>'),
        (b"<a b/c href=/y/><br/><p a=/>", b'<a b="" c="" href="/p/proxy/y/"><br/><p a="/">'),
        (b'<a href="&#x2F;y&copy=&copy;&#128;">', '<a href="/p/proxy/y&amp;copy=©€">'.encode()),
        (b"\xff<p>1 < 2</p>&amp;<", b"\xff<p>1 < 2</p>&amp;<"),
        (b'ends <a href="/x', b"ends "),
    ],
)
def test_pages(page: bytes, rewritten: bytes) -> None:
    assert LINKS.page(page) == rewritten.replace("©€".encode(), b"%C2%A9%E2%82%AC")
