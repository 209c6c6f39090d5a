"""The page as one HTML file with a recording in it, which needs neither a server nor a network.

The modules of the page become one script: each is a function that returns the module's exports, and comes after the modules that it
imports. The Content-Security-Policy in the file allows this script and these styles by their hashes.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from fakeapiserver.ui.files import files

_MAIN: Final = "main.js"
_IMPORT: Final = re.compile(r'^import\s*(\{[^}]*\})\s*from\s*"\./([\w.-]+)";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_STYLE: Final = re.compile(r'<link rel="stylesheet" href="([\w.-]+)">\n?')
_SCRIPT: Final = f'<script type="module" src="{_MAIN}"></script>'
_CHARSET: Final = '<meta charset="utf-8">'


def page(document: bytes) -> bytes:
    """Returns the page with a recording: the JSON document that evidence/timeline/embedded.py makes."""
    head, tail = _parts()
    return head + document.replace(b"<", b"\\u003c") + tail


@cache
def _parts() -> tuple[bytes, bytes]:
    """The page before and after the recording."""
    texts = {name: file.body.decode() for name, file in files().items()}
    html = texts["index.html"]
    style = "".join(texts[name] for name in _STYLE.findall(html))
    script = "".join(_modules(texts)).replace("</script", "<\\/script")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    html = _STYLE.sub("", html)
    html = html.replace(_CHARSET, f'{_CHARSET}\n<meta http-equiv="Content-Security-Policy" content="{policy}">', 1)
    head, found, tail = html.partition(_SCRIPT)
    assert found
    recording = '<script type="application/json" id="recording">'
    before = f'{head}<style>{style}</style>\n<script type="module">{script}</script>\n{recording}'
    return before.encode(), f"</script>{tail}".encode()


def _modules(texts: Mapping[str, str]) -> Iterator[str]:
    """Yields the modules that the page loads, each after those that it imports."""
    seen: set[str] = set()

    def ordered(name: str) -> Iterator[str]:
        if name in seen:
            return
        seen.add(name)
        text = texts[name]
        for _, imported in _IMPORT.findall(text):
            yield from ordered(imported)
        exports = ", ".join(name for _, name in _EXPORT.findall(text))
        body = _EXPORT.sub(r"\1", _IMPORT.sub(_destructured, text))
        yield f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n'

    yield "const modules = {};\n"

    yield from ordered(_MAIN)


def _destructured(line: re.Match[str]) -> str:
    """The names of an import as variables of the function."""
    return f'const {line[1].replace(" as ", ": ")} = modules["{line[2]}"];'


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
