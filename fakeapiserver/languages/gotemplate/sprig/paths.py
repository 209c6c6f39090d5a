"""Functions of file paths and URLs."""

import posixpath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from fakeapiserver.languages.gotemplate.values import TemplateError, shown


def base(path: str) -> str:
    stripped = path.rstrip("/")
    return posixpath.basename(stripped) or ("/" if path else ".")


def clean(path: str) -> str:
    cleaned = posixpath.normpath(path) if path else "."
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def directory(path: str) -> str:
    return clean(path[: path.rfind("/") + 1])


def ext(path: str) -> str:
    name = path[path.rfind("/") + 1 :]
    return name[name.rfind(".") :] if "." in name else ""


def url_parse(text: str) -> dict[str, Any]:
    try:
        url = urlsplit(text)
    except ValueError as error:
        raise TemplateError(f"unable to parse url: {error}") from None
    userinfo, at, host = url.netloc.rpartition("@")
    return {
        "scheme": url.scheme,
        "host": host,
        "hostname": url.hostname or "",
        "path": url.path,
        "query": url.query,
        "opaque": "" if url.netloc or url.path.startswith("/") or not url.scheme else url.path,
        "fragment": url.fragment,
        "userinfo": userinfo if at else "",
    }


def url_join(parts: dict[str, Any]) -> str:
    def text(name: str) -> str:
        return shown(parts[name]) if parts.get(name) is not None else ""

    host = f"{text('userinfo')}@{text('host')}" if text("userinfo") else text("host")
    return urlunsplit((text("scheme"), host, text("path"), text("query"), text("fragment")))
