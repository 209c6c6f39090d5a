"""/statusz and /flagz: what a person looks at when a server behaves oddly, as text or as a document.

Upstream: k8s.io/apiserver/pkg/server/{statusz,flagz}, k8s.io/component-base/zpages.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from fakeapiserver.apimachinery.errors import new_not_acceptable
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation import accept
from fakeapiserver.endpoints.negotiation.media_types import CBOR, JSON, YAML, Accept
from fakeapiserver.endpoints.request import Request, Response

COMPONENT: Final = "apiserver"
PATHS: Final = ("/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version")
_TEXT: Final = "text/plain"
_TEXT_PARAMETERS: Final[tuple[dict[str, str], ...]] = ({}, {"charset": "utf-8"})
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees"
    " and is for debugging purposes only."
)


def statusz(
    request: Request,
    version: Mapping[str, str],
    *,
    started: float,
    now: float,
    component: str = COMPONENT,
    paths: Sequence[str] = PATHS,
) -> Response:
    """`version` is what /version says; times are in seconds since the epoch; `paths` are what the component serves besides."""
    uptime = int(now - started)
    emulated = f"{version['emulationMajor']}.{version['emulationMinor']}"
    binary, go = version["gitVersion"].removeprefix("v"), version["goVersion"]
    document = {
        "startTime": rfc3339(started),
        "uptimeSeconds": uptime,
        "goVersion": go,
        "binaryVersion": binary,
        "emulationVersion": emulated,
        "paths": list(paths),
    }
    days, hours, minutes, seconds = uptime // 86400, uptime // 3600 % 24, uptime // 60 % 60, uptime % 60
    up = (
        f"{days} day {hours} hr {minutes:02} min {seconds:02} sec"
        if days
        else f"{hours} hr {minutes:02} min {seconds:02} sec"
    )
    lines = {
        "Started": datetime.fromtimestamp(started, UTC).strftime("%a %b %e %H:%M:%S UTC %Y"),
        "Up": up,
        "Go version": go,
        "Binary version": binary,
        "Emulation version": emulated,
        "Paths": " ".join(paths),
    }
    text = "\n" + "".join(f"{name}  {value}\n" for name, value in lines.items())
    return _page(request, "Statusz", document, text, component)


def text_only() -> Response:
    """Returns the refusal of other media types until 1.34 (upstream: k8s.io/component-base/zpages/httputil)."""
    return Response(406, b"media type not acceptable, must be: text/plain\n", "text/plain; charset=utf-8")


def takes_text(request: Request) -> bool:
    """Reports whether the client asks for plain text, or for anything."""
    clauses = accept.parse(request.header(b"accept") or "")
    return any(
        clause.takes(_TEXT) and {name: value.lower() for name, value in clause.parameters.items()} in _TEXT_PARAMETERS
        for clause in clauses
    )


def flagz(request: Request, flags: Mapping[str, object], component: str = COMPONENT) -> Response:
    """`flags` by name, as the server was started with them."""
    shown = {name: _flag(flags[name]) for name in sorted(flags)}
    text = "".join(f"{name} {value}\n" for name, value in shown.items())
    return _page(request, "Flagz", {"flags": shown}, text, component)


def _flag(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    if isinstance(value, Mapping):  # of gates, each with the name of its component, which is empty
        return ",".join(f":{name}={_flag(on)}" for name, on in value.items())
    return "" if value is None else str(value)


def _page(request: Request, kind: str, document: dict[str, Any], text: str, component: str) -> Response:
    form = _form(request.header(b"accept"), kind, (CBOR,) if CBOR in request.supported else ())
    if form is None:
        page = f"\n{component} {kind.lower()}\n{_WARNING}\n{text}"
        return Response(200, page.encode(), "text/plain; charset=utf-8")
    head = {"kind": kind, "apiVersion": f"config.k8s.io/{form.as_version}", "metadata": {"name": component}}
    response = respond.encoded(request, {**head, **document}, form)
    response.content_type += f";g=config.k8s.io;v={form.as_version};as={kind}"
    return response


def _form(header: str, kind: str, also: tuple[str, ...]) -> Accept | None:
    """The document's form, or None for text; StatusError 406 when the client takes neither. `also`: more than JSON and YAML."""
    for clause in accept.parse(header) if header else ():
        parameters = clause.parameters
        if parameters.get("stream") or parameters.get("sv"):
            continue
        if clause.takes(_TEXT) and not any(parameters.get(name) for name in ("as", "g", "v")):
            return None
        for media_type in (JSON, YAML, *also):
            wanted = parameters.get("g") == "config.k8s.io" and parameters.get("as") == kind
            if clause.takes(media_type) and wanted and parameters.get("v") in ("v1alpha1", "v1beta1"):
                return Accept(media_type, as_version=parameters["v"])
    if header:
        raise new_not_acceptable((JSON, YAML, _TEXT, *also))
    return None
