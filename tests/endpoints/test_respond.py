"""Answers made from Statuses."""

from fakeapiserver.apimachinery.errors import Status
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response


def _answer(status: Status) -> Response:
    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    return respond.status_response(Request("GET", "/api", {}, [], receive, {}), status)


def test_the_keys_of_a_status_are_in_the_order_in_which_go_writes_them() -> None:
    """A webhook may send them in any order."""
    cause = {"field": "f", "message": "m", "reason": "r"}
    details = {"retryAfterSeconds": 1, "causes": [cause], "uid": "u", "name": "n"}
    response = _answer({"code": 422, "details": details, "reason": "Invalid", "metadata": {}, "kind": "Status"})
    expected = (
        '{"kind":"Status","metadata":{},"reason":"Invalid","details":{"name":"n","uid":"u",'
        '"causes":[{"reason":"r","message":"m","field":"f"}],"retryAfterSeconds":1},"code":422}'
    )
    assert response.body.decode().strip() == expected
