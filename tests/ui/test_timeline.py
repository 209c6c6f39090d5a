"""The time line: marks, filters, joins, moments, by pointer and by keyboard, with 50,000 requests."""

import re

import pytest

SPOKEN = ".timeline [aria-live]"


def _focus(page):
    page.locator("canvas.marks").focus()


def _rows(page):
    return page.locator(".timeline .labels .label").all_inner_texts()


def test_clients_have_lanes_and_controllers_are_collapsed(open_page, small):
    page = open_page(small)
    page.locator(".timeline button.label").first.wait_for()
    assert {"kubectl", "my-operator"} <= set(_rows(page))
    controllers = page.get_by_role("button", name="Controllers and nodes")
    assert controllers.get_attribute("aria-expanded") == "false"
    controllers.click()
    assert "replicaset-controller" in _rows(page)
    page.get_by_role("button", name="Controllers and nodes").click()
    assert "replicaset-controller" not in _rows(page)


def test_arrows_move_between_marks_and_lanes_and_enter_selects(open_page, small):
    page = open_page(small)
    page.locator(".timeline button.label").first.wait_for()
    _focus(page)
    for _ in range(6):
        page.keyboard.press("ArrowDown")
        if "kubectl" in page.locator(SPOKEN).inner_text():
            break
    page.keyboard.press("Home")
    assert "kubectl, 1 of" in page.locator(SPOKEN).inner_text()
    page.keyboard.press("ArrowRight")
    assert "kubectl, 2 of" in page.locator(SPOKEN).inner_text()
    page.keyboard.press("Enter")
    page.locator(".panel .request").wait_for()
    assert "kubectl create deployments.apps/shop-0/web-0" in page.locator(SPOKEN).inner_text()
    assert "effects are drawn" in page.locator(SPOKEN).inner_text()
    page.keyboard.press("Escape")
    page.locator(".panel").wait_for(state="hidden")


def test_a_click_on_a_mark_selects_it_and_joins_are_drawn(open_page, small):
    page = open_page(small, "#query=verb:create+client:kubectl+kind:deployments")
    page.locator(".timeline button.label").first.wait_for()
    label = page.locator(".timeline .label", has_text="kubectl").bounding_box()
    box = page.locator("canvas.marks").bounding_box()
    request = next(
        r for r in small["records"] if r["t"] == "request" and r["r"] == "deployments.apps" and r["verb"] == "create"
    )
    page.mouse.click(_x_of(small, request["at"], box), label["y"] + label["height"] / 2)
    page.locator(".panel .request").wait_for()
    assert f"request={request['seq']}" in page.url
    assert "causes and" in page.locator(".timeline .status").inner_text()


def _x_of(recording, at, box):
    """Returns the place of a time on the screen while everything is shown."""
    times = [record["at"] for record in recording["records"] if "at" in record]
    first, last = min(times), max(times)
    whole = (last - first) * 1.04
    return box["x"] + (at - (first - whole * 0.015)) / whole * box["width"] + 1


@pytest.mark.parametrize(
    ("query", "lanes"),
    [
        ("client:kubectl", ["kubectl"]),
        ("status:refused", ["my-operator"]),
        ("-client:kubectl+verb:update", ["my-operator"]),
        ("ns:nowhere", []),
        ("exceeded+quota", []),
    ],
)
def test_a_filter_leaves_the_lanes_that_match(open_page, small, query, lanes):
    page = open_page(small, f"#query={query}")
    page.locator(".timeline button.label").first.wait_for()
    rows = _rows(page)
    assert [row for row in rows if row in ("kubectl", "my-operator")] == lanes


def test_the_filter_is_reached_by_its_key_and_lists_write_it(open_page, small, expect):
    page = open_page(small)
    page.locator(".timeline button.label").first.wait_for()
    page.keyboard.press("/")
    page.keyboard.type("ns:shop-0")
    expect(page).to_have_url(re.compile("query=ns%3Ashop-0$"))
    page.get_by_label("Status", exact=True).select_option("refused")
    expect(page.locator("[data-filter]")).to_have_value("ns:shop-0 status:refused")


def test_a_drag_with_shift_compares_two_moments(open_page, small):
    page = open_page(small)
    page.locator(".timeline button.label").first.wait_for()
    box = page.locator("canvas.marks").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 80, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 300, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.get_by_role("heading", name="Between revisions").wait_for()
    assert page.locator(".changed-objects li").count() > 3


def test_brackets_compare_two_moments(open_page, small):
    page = open_page(small)
    page.locator(".timeline button.label").first.wait_for()
    _focus(page)
    for key in ("ArrowDown", "Home", "[", "End", "]"):
        page.keyboard.press(key)
    page.get_by_role("heading", name="Between revisions").wait_for()


def test_the_differences_between_two_moments_are_those_of_the_states(open_page, small):
    states = [record for record in small["records"] if record["t"] == "state" and record["r"] == "pods"]
    first, last = states[0], [state for state in states if state["uid"] == states[0]["uid"]][-1]
    page = open_page(small, f"#range={first['rev']}-{last['rev']}&panel=changes")
    page.locator(".changed-objects li", has_text=first["name"]).get_by_text("status.phase").wait_for()


def test_the_axis_scrubs(open_page, small):
    page = open_page(small)
    page.locator(".timeline button.label").first.wait_for()
    box = page.locator("canvas.marks").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 10)
    page.locator(".scrubber.past").wait_for()
    assert "moment=" in page.url


def test_the_axis_shows_the_clusters_time(open_page, small, expect):
    page = open_page(small)
    page.get_by_role("button", name="Cluster time").click()
    expect(page).to_have_url(re.compile("axis=cluster"))
    expect(page.get_by_role("button", name="Cluster time")).to_have_attribute("aria-pressed", "true")


def test_an_object_brings_lanes_of_its_owners_and_dependents(open_page, small):
    page = open_page(small, "#panel=object&object=replicasets.apps/shop-0/web-0-7d4b9")
    page.get_by_role("button", name="Selected object").wait_for()
    rows = _rows(page)
    start = next(index for index, row in enumerate(rows) if row.startswith(("▾Selected object", "▾\nSelected object")))
    assert rows[start + 1 : start + 4] == ["deploy/web-0", "rs/web-0-7d4b9", "po/web-0-7d4b9-00000"]


@pytest.mark.slow
def test_50_000_requests_and_10_000_objects_stay_fluid(open_page, large):
    page = open_page(large)
    page.locator(".timeline button.label").first.wait_for()
    assert int(page.locator("canvas.marks").get_attribute("data-marks")) == len(large["records"])
    _focus(page)
    for key in ("ArrowDown", "+", "+", "Shift+ArrowRight", "0", "End"):
        page.keyboard.press(key)
    assert page.locator(SPOKEN).inner_text() != ""
    page.get_by_role("button", name="All objects").click()
    page.get_by_text("more: filter to see them").first.wait_for()
    assert page.locator(".timeline .labels .label").count() < 450


@pytest.mark.slow
@pytest.mark.parametrize("view", ["objects", "graph", "why"])
def test_other_views_take_10_000_objects(open_page, large, view):
    page = open_page(large, f"#view={view}")
    page.locator(f".nav a[data-view={view}][aria-current=page]").wait_for()
    page.keyboard.press(",")
    page.locator(".scrubber.past").wait_for()
    assert page.locator("#view *").count() < 5000


def test_a_recording_without_requests_says_how_to_get_them(open_page, small, expect):
    records = [{**record, "by": 0} if record["t"] == "state" else record for record in small["records"]]
    page = open_page({**small, "records": [record for record in records if record["t"] != "request"]})
    expect(page.get_by_text("There are no requests in this recording.")).to_be_visible()
    expect(page.get_by_text("--ui, or as Cluster(ui=True)")).to_be_visible()
    expect(open_page(small).get_by_text("There are no requests in this recording.")).to_be_hidden()
