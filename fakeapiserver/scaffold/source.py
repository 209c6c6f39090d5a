"""The requirement by which a project installs fakeapiserver."""

import json
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_NAME: Final = "fakeapiserver"
_REQUIREMENT: Final = re.compile(r"fakeapiserver *([<>=!~].*|@ *\S.*)?")


def installable(source: str) -> str:
    """Returns what pip is given to install fakeapiserver: a requirement, or the absolute path of a folder or a wheel. By default it
    is what this process runs, if pip installed that from the disk, and else the package's name.

    Raises ValueError with one sentence if there is nothing of that name, or no package in it."""
    if not source:
        return _running()
    if _REQUIREMENT.fullmatch(source):
        return source
    path = Path(source).expanduser().resolve()
    if path.suffix == ".whl" and path.is_file():
        return str(path)
    if (path / "pyproject.toml").is_file():
        return str(path)
    raise ValueError(
        f"--fakeapiserver-source {source!r}: neither a requirement such as fakeapiserver>=0.1, nor a wheel, nor a folder with a "
        "pyproject.toml"
    )


def _running() -> str:
    """Returns the source of this installation, as pip recorded it (PEP 610)."""
    try:
        recorded = distribution(_NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return _NAME
    url = urlsplit(json.loads(recorded)["url"]) if recorded else None
    if url is None or url.scheme != "file":
        return _NAME
    path = Path(unquote(url.path))
    return str(path) if path.exists() else _NAME
