"""The details of a request, and the lines that send it again."""

import pytest

MODULE = "async (args) => { const module = await import('./repeat.js'); return module[args[0]](...args.slice(1)); }"

REQUEST = {
    "verb": "get",
    "path": "/api/v1/namespaces/shop/pods/web",
    "query": "",
    "r": "pods",
    "ns": "shop",
    "name": "web",
    "sub": "",
    "status": 200,
    "bundled": False,
}
KIND = {"namespaced": True}


@pytest.mark.parametrize(
    ("request_", "body", "expected"),
    [
        ({}, None, ["kubectl get --raw /api/v1/namespaces/shop/pods/web", 'cluster.get("pods", "web", namespace="shop")']),
        ({"query": "watch=1&a='b"}, None, ["kubectl get --raw '/api/v1/namespaces/shop/pods/web?watch=1&a='\\''b'"]),
        ({"verb": "delete"}, None, ["kubectl delete --raw", 'cluster.delete("pods", "web", namespace="shop")']),
        (
            {"verb": "patch"},
            {"spec": {"paused": True, "x": None}},
            ["kubectl patch pods web -n shop --type=merge",
             'cluster.patch("pods/web", {"spec": {"paused": True, "x": None}}, namespace="shop")'],
        ),
        ({"verb": "patch", "sub": "status"}, [{"op": "remove", "path": "/a"}], ["--subresource=status --type=json"]),
        ({"verb": "create"}, {"kind": "Pod"}, ["kubectl create --raw", "-X POST", 'cluster.apply({"kind": "Pod"}, namespace="shop")']),
    ],
)  # fmt: skip
def test_lines_repeat_a_request(open_page, small, request_, body, expected):
    page = open_page(small)
    lines = page.evaluate(MODULE, ["requestLines", {**REQUEST, **request_}, KIND, body])
    text = "\n".join(line for _, line in lines)
    assert [part for part in expected if part not in text] == []


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"status": 409, "verb": "update"},
         "fakeapiserver faults add verb=update resource=pods namespace=shop name=web status=409 times=1"),
        ({"status": 200, "verb": "create"},
         "fakeapiserver faults add verb=create resource=pods namespace=shop status=409 times=1"),
        ({"status": 403, "r": "", "path": "/version", "ns": "", "name": "", "bundled": True},
         "fakeapiserver faults add verb=get path=/version bundled=true status=403 times=1"),
    ],
)  # fmt: skip
def test_a_fault_is_made_of_a_request(open_page, small, request_, expected):
    page = open_page(small)
    fault = page.evaluate(MODULE, ["faultFor", {**REQUEST, **request_}])
    assert page.evaluate(MODULE, ["faultLines", fault])[0][1] == expected


def test_a_write_shows_its_changes_and_its_joins(open_page, small):
    request = next(r for r in small["records"] if r["t"] == "request" and r["verb"] == "patch" and r["r"] == "pods")
    page = open_page(small, f"#panel=request&request={request['seq']}")
    page.get_by_role("tab", name="Changes", selected=True).wait_for()
    page.get_by_text("status.phase").first.wait_for()
    page.get_by_role("tab", name="Changes").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("tab", name="Body", selected=True).wait_for()
    page.get_by_role("tab", name="Causes and effects").click()
    page.get_by_text("sent to the watch of replicaset-controller").wait_for()
    page.get_by_role("tab", name="Repeat").click()
    page.get_by_role("button", name="Copy the line for kubectl").wait_for()


def test_a_refused_request_shows_its_message(open_page, small):
    request = next(r for r in small["records"] if r["t"] == "request" and r["status"] == 403)
    page = open_page(small, f"#panel=request&request={request['seq']}")
    page.locator(".refusal", has_text="exceeded quota: pods").wait_for()


def test_share_repeats_the_selected_request_and_links_to_the_moment(open_page, small):
    page = open_page(small, "#view=share&panel=request&request=7&moment=4")
    page.locator(".share code", has_text="kubectl").wait_for()
    assert "moment=4" in page.locator(".share code").first.inner_text()
    assert "request=7" in page.locator(".share code").first.inner_text()


def test_a_watch_shows_what_it_has_sent(open_page, small, expect):
    watch = next(one for one in small["records"] if one.get("verb") == "watch" and one["r"] == "pods")
    sent = [one["rev"] for one in small["records"] if one["t"] == "delivery" and one["seq"] == watch["seq"]]
    page = open_page(small, f"#panel=request&request={watch['seq']}")
    panel = page.locator(".panel")
    expect(panel).to_contain_text(f"{len(sent)} events, and it goes on")
    expect(panel.locator(".joins li").first).to_contain_text(f"of revision {sent[-1][0]}")
    end = {"t": "watch", "n": 0, "seq": watch["seq"], "at": 1.0, "events": 3, "ended": "client"}
    page = open_page({**small, "records": [*small["records"], end]}, f"#panel=request&request={watch['seq']}")
    expect(page.locator(".panel")).to_contain_text("3 events, then the client has gone")
