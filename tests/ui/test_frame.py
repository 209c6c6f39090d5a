"""The page's frame: views, scrubber, palette, keys, links, notices; in the dark, on a phone and by keyboard alone."""

import re

import pytest

VIEWS = ("timeline", "objects", "graph", "why", "share")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_view_opens_without_errors(open_page, small, view, scheme):
    page = open_page(small, f"#view={view}", color_scheme=scheme)
    page.locator(f".nav a[data-view={view}][aria-current=page]").wait_for()
    assert page.locator("#view").inner_text() != ""
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is (scheme == "light")


@pytest.mark.parametrize("view", VIEWS)
def test_a_script_in_an_annotation_does_not_run(open_page, small, view):
    page = open_page(small, f"#view={view}&panel=object&object=deployments.apps/shop-0/web-0")
    page.locator(".panel").wait_for()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.ran") is None
    assert page.locator("img").count() == 0


def test_keys_go_to_views(open_page, small):
    page = open_page(small)
    page.locator(".timeline").wait_for()
    for key, view in (("o", "objects"), ("g", "graph"), ("w", "why"), ("s", "share"), ("t", "timeline")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.locator(f".nav a[data-view={view}][aria-current=page]").wait_for()


def test_the_scrubber_shows_a_moment_in_the_address_and_back_to_now(open_page, small):
    page = open_page(small)
    page.locator(".scrubber input").wait_for()
    page.keyboard.press(",")
    page.locator(".scrubber.past").wait_for()
    newest = int(page.locator(".scrubber input").get_attribute("max"))
    assert f"moment={newest - 1}" in page.url
    page.keyboard.press("n")
    page.locator(".scrubber:not(.past)").wait_for()
    assert "moment" not in page.url


def test_the_slider_is_moved_by_the_keyboard(open_page, small):
    page = open_page(small)
    page.locator(".scrubber input").focus()
    page.keyboard.press("Home")
    page.locator(".scrubber.past").wait_for()
    assert "revision 0" in page.locator(".scrubber input").get_attribute("aria-valuetext")


def test_a_link_opens_its_moment_and_selection(open_page, small):
    page = open_page(small, "#view=objects&moment=5&panel=request&request=7")
    page.get_by_role("complementary", name="Details").get_by_text("Request 7", exact=True).wait_for()
    assert page.locator(".scrubber .moment b").inner_text() == "5"


def test_the_palette_finds_an_object(open_page, small):
    page = open_page(small)
    page.locator(".timeline").wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("deployment web-0")
    page.get_by_role("option", name="shop-0/web-0 Deployment").first.wait_for()
    page.keyboard.press("Enter")
    page.locator(".panel").wait_for()
    assert "object=deployments.apps/shop-0/web-0" in page.url


def test_the_palette_finds_requests_and_revisions(open_page, small):
    page = open_page(small)
    page.get_by_role("button", name="Jump to…").click()
    page.keyboard.type("#7")
    page.keyboard.press("Enter")
    page.locator(".panel .request").wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("@4")
    page.keyboard.press("Enter")
    page.locator(".scrubber.past").wait_for()
    assert "moment=4" in page.url


def test_escape_closes_the_details(open_page, small):
    page = open_page(small, "#panel=request&request=7")
    page.locator(".panel").wait_for()
    page.keyboard.press("Escape")
    page.locator(".panel").wait_for(state="hidden")
    assert "request" not in page.url


def test_help_lists_the_keys(open_page, small):
    page = open_page(small)
    page.locator(".timeline").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Keys").wait_for(state="hidden")


def test_a_failure_is_shown_with_the_title(open_page, small, expect):
    page = open_page({**small, "failure": "AssertionError: <b>web</b> is not ready"})
    assert "<b>web</b> is not ready" in page.get_by_role("alert").inner_text()
    expect(page).to_have_title(re.compile(r"^tests/test_shop\.py::test_rollout"))


def test_levers_of_a_saved_page_say_why_they_are_missing(open_page, small):
    page = open_page(small, "#view=levers")
    page.get_by_role("heading", name="No levers in a saved page").wait_for()


def test_an_empty_recording_says_what_comes(open_page):
    page = open_page({"records": [], "states": {}, "requests": {}, "columns": {}})
    page.get_by_role("heading", name="Nothing has happened yet").wait_for()


def test_a_phone_begins_with_the_objects(open_page, small):
    page = open_page(small, viewport={"width": 390, "height": 800})
    page.locator(".nav a[data-view=objects][aria-current=page]").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto(f"{page.url}&panel=object&object=deployments.apps/shop-0/web-0")
    page.locator(".panel").wait_for()
    assert page.locator(".panel").bounding_box()["width"] == 390
    page.get_by_role("button", name="Close the details").click()
    page.locator(".panel").wait_for(state="hidden")


def test_the_width_of_the_details_is_changed_by_the_keyboard(open_page, small):
    page = open_page(small, "#panel=request&request=7")
    handle = page.get_by_role("separator", name="Width of the details")
    before = page.locator(".panel").bounding_box()["width"]
    handle.focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator(".panel").bounding_box()["width"] > before


def test_reduced_motion_has_no_transitions(open_page, small):
    page = open_page(small, reduced_motion="reduce")
    page.locator(".nav a").first.wait_for()
    assert page.evaluate("getComputedStyle(document.querySelector('.nav a')).transitionDuration") in ("0s", "")
