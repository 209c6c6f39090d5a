"""A FastAPI application that is a Kubernetes API server, for uvicorn, hypercorn, TestClient, or as a part of another application.

    uvicorn fakeapiserver.asgi:app

    app = create_app(nodes=3)

    @app.get("/hello")
    async def hello() -> str: ...

docs/asgi.md says who the caller of a request is, and what each ASGI server can and can't do.
"""

from typing import TYPE_CHECKING

from fakeapiserver.asgi.application import APIServerApp, create_app

if TYPE_CHECKING:
    app: APIServerApp

__all__ = ["APIServerApp", "app", "create_app"]


def __getattr__(name: str) -> object:
    """`app` is made when it is first asked for, with the defaults of create_app()."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = create_app()
    return globals()["app"]
