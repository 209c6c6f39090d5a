"""Tests Go's error messages for invalid URLs."""

import pytest

from fakeapiserver.apimachinery.go.url import request_uri_problem, url_problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("https://a.b/c?d#e", ""),
        ("", ""),
        ("x", ""),
        ("a:b", ""),
        ("https://[::1", "parse \"https://[::1\": missing ']' in host"),
        ("https://x y/", 'parse "https://x y/": invalid character " " in host name'),
        ("%zz", 'parse "%zz": invalid URL escape "%zz"'),
        ("1a:b", 'parse "1a:b": first path segment in URL cannot contain colon'),
        (":", 'parse ":": missing protocol scheme'),
    ],
)
def test_a_url_is_accepted_or_has_gos_error(text: str, problem: str) -> None:
    assert url_problem(text) == problem


@pytest.mark.parametrize(
    ("text", "problem"), [("", 'parse "": empty url'), ("x", 'parse "x": invalid URI for request')]
)
def test_a_request_uri_has_a_path(text: str, problem: str) -> None:
    assert request_uri_problem(text) == problem
