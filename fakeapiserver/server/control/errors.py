"""Shared code of the test control's applications: strict bodies, and errors that are metav1.Status objects.

kubectl shows the message of a Status (`kubectl create --raw`, `get --raw`); it sends bodies without a Content-Type.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, model_validator
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fakeapiserver.apimachinery.errors import (
    StatusError,
    new_bad_request,
    new_forbidden,
    new_generic_method_not_allowed,
    new_unsupported_media_type,
    status_error,
)
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.server.pages.fixed_paths import CONTROL
from fakeapiserver.storage.interface import ReadOnly

PREFIX: Final = f"/{CONTROL}"
_REASONS: Final = {400: "BadRequest", 404: "NotFound", 409: "Conflict", 422: "Invalid", 504: "Timeout"}
# Errors of requests that can't be understood at all: 400, as upstream's strict decoding answers; all others are 422.
_UNREADABLE: Final = ("json_invalid", "unknown_field", "only_in_python")
_CAUSES: Final = {"missing": "FieldValueRequired", "literal_error": "FieldValueNotSupported"}
_MAX_SHOWN: Final = 80
# What may be a lone surrogate, a number that is too large, or no JSON.
_UNUSUAL: Final = re.compile(rb"\\u[dD]|[eE][+]?[0-9]{3}|[0-9]{300}|NaN|Infinity").search
# The paths whose bodies are files.
_SAVED_STATES: Final = ("/state/load", "/state/diff")
_MAX_ERRORS: Final = 5


class Body(BaseModel):
    """A JSON object in which only known fields may occur."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_fields(cls, value: object) -> object:
        for name in value if isinstance(value, dict) else ():
            if name not in cls.model_fields:
                fields = ", ".join(cls.model_fields)
                text = "unknown field {name}: the fields of {kind} are {fields}"
                raise PydanticCustomError(
                    "unknown_field", text, {"name": go_quote(str(name)), "kind": cls.__name__, "fields": fields}
                )
        return value


class Status(BaseModel):
    """The part of a metav1.Status that says why a request was refused."""

    kind: Literal["Status"]
    apiVersion: Literal["v1"]  # noqa: N815  upstream's name
    status: Literal["Failure"]
    code: int
    reason: str
    message: str


def control_application(title: str) -> FastAPI:
    """A FastAPI application below /fakeapiserver/, without routes. Its page of documentation is docs_page.py's."""
    app = FastAPI(
        title=title,
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json",
        responses={"4XX": {"description": "The reason", "model": Status}},
    )
    app.add_middleware(_JSONBodies)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ReadOnly, _forbidden)
    return app


class _JSONBodies:
    """Takes a body without a Content-Type for JSON, and refuses one of any other type with 415. Numbers beyond float64 and literals such as
    NaN, which Python takes for JSON, are refused with 400; lone surrogates become U+FFFD, as in other bodies.
    Files of states are left alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers: dict[bytes, bytes] = dict(scope["headers"])
            media_type = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if not media_type:
                scope = {**scope, "headers": [*scope["headers"], (b"content-type", b"application/json")]}
            elif media_type != b"application/json" and headers.get(b"content-length") != b"0":
                text = f"the body of the request was {media_type.decode('latin-1')} - accepted media types include: application/json"
                await _response(new_unsupported_media_type(text))(scope, receive, send)
                return
            body = await Request(scope, receive).body()
            if _UNUSUAL(body) and not scope["path"].endswith(_SAVED_STATES):
                try:
                    body = json.encode(json.decode(body))
                except ValueError as error:
                    await _response(new_bad_request(f"the body is not JSON: {error}"))(scope, receive, send)
                    return
            receive = _replayed(body, receive)
        await self._app(scope, receive, send)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Returns the messages of a body that was read, and then those that follow it."""
    bodies = [body]

    async def next_message() -> Message:
        return {"type": "http.request", "body": bodies.pop()} if bodies else await receive()

    return next_message


def _response(error: StatusError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(error.status, error.code, headers)


def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return _response(new_generic_method_not_allowed(), error.headers)
    message = error.detail
    if message == "Not Found":  # the router's own: no such path
        message = f"there is no {request.url.path}: {PREFIX}/docs lists the paths"
    reason = _REASONS.get(error.status_code, "InternalError" if error.status_code >= 500 else "")
    return _response(status_error(error.status_code, reason, message, {}), error.headers)


def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = [*_relevant(error.errors())]
    unreadable = [row for row in errors if row["type"] in _UNREADABLE]
    if unreadable:
        return _response(
            new_bad_request("; ".join(_sentence(_unreadable_field(row), _problem(row)) for row in unreadable))
        )
    causes = [
        {
            "reason": _CAUSES.get(row["type"], "FieldValueInvalid"),
            "message": _problem(row),
            "field": _field(row["loc"]) or str(row["loc"][0]),
        }
        for row in errors
    ]
    message = "; ".join(_sentence(cause["field"], cause["message"]) for cause in causes)
    return _response(status_error(422, "Invalid", f"the request is invalid: {message}", {"causes": causes}))


def _forbidden(_: Request, error: Exception) -> JSONResponse:
    return _response(new_forbidden(GroupResource("", ""), "", str(error)))


def _relevant(errors: Sequence[Any]) -> Iterator[Any]:
    """The errors without those of a union's other choices: what isn't a text is meant as an object."""
    objects = {row["loc"][:-1] for row in errors if row["type"] != "string_type"}
    for row in errors[:_MAX_ERRORS]:
        is_other_choice = row["type"] == "string_type" and any(
            place[: len(row["loc"]) - 1] == row["loc"][:-1] for place in objects
        )
        if not is_other_choice:
            yield row


def _sentence(field: str, problem: str) -> str:
    return f"{field}: {problem}" if field else problem


def _unreadable_field(row: Any) -> str:
    """A place in bytes that are no JSON isn't a field."""
    return "" if row["type"] == "json_invalid" else _field(row["loc"])


def _problem(row: Any) -> str:
    """`Input should be 'run', 'step' or 'off', found 'fly'`."""
    if row["type"] == "json_invalid":
        return f"the body is not JSON: {row['ctx']['error']} at character {row['loc'][-1]}"
    if row["type"] in ("missing", *_UNREADABLE):
        return str(row["msg"])
    shown = repr(row["input"])
    return f"{row['msg']}, found {shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + '...'}"


def _field(place: Sequence[str | int]) -> str:
    """`exit_codes[0]` of the place ("body", "exit_codes", 0), without the names of classes; empty for the whole body."""
    text = ""
    for part in place[1:]:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not (part[:1].isupper() or part == "str" or "[" in part):
            text += f".{part}" if text else part
    return text


@contextmanager
def refused() -> Iterator[None]:
    """Says what is wrong as an answer: 400 for what can't be asked, 504 for what goes on moving."""
    try:
        yield
    except TimeoutError as error:
        raise HTTPException(504, str(error)) from error
    except ValueError as error:
        raise HTTPException(400, str(error)) from error
