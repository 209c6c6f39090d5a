"""The log-in of the page: one-time links, cookies, foreign origins and foreign hosts."""

import http.client
import json
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import pytest

from fakeapiserver import Cluster
from fakeapiserver.ui.sessions import Sessions

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CREATED = json.dumps({"metadata": {"generateName": "from-a-page-"}}).encode()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(ui=True, controllers=()) as cluster:
        yield cluster


class Browser:
    """A client of the page's port that keeps its cookie."""

    def __init__(self, link: str) -> None:
        self.link = urlsplit(link)
        self.cookie = ""

    def request(
        self, path: str, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str, Mapping[str, str]]:
        connection = http.client.HTTPConnection(self.link.netloc, timeout=30)
        cookie = {"Cookie": self.cookie} if self.cookie else {}
        connection.request(method, path, body, {**cookie, **(headers or {})})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text, dict(response.getheaders())

    def log_in(self) -> int:
        status, _, headers = self.request(f"{self.link.path}?{self.link.query}")
        self.cookie = headers.get("set-cookie", "").partition(";")[0]
        return status

    def token(self) -> str:
        return str(json.loads(self.request("/ui/session")[1])["token"])


@pytest.fixture
def browser(cluster: Cluster) -> Browser:
    browser = Browser(cluster.page.link())
    assert browser.log_in() == 303
    return browser


def test_a_link_logs_one_browser_in(cluster: Cluster) -> None:
    link = cluster.page.link()
    first, second = Browser(link), Browser(link)
    status, _, headers = first.request(f"{first.link.path}?{first.link.query}")
    assert (status, headers["location"]) == (303, "/ui/")
    assert headers["set-cookie"].endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert second.log_in() == 401
    assert second.request(CONFIG_MAPS)[0] == 401


def test_a_browser_that_is_logged_in_reads_and_writes(browser: Browser) -> None:
    assert json.loads(browser.request(CONFIG_MAPS)[1])["kind"] == "ConfigMapList"
    headers = {"Content-Type": "application/json", "X-Fakeapiserver-Token": browser.token()}
    assert browser.request(CONFIG_MAPS, "POST", CREATED, headers)[0] == 201


@pytest.mark.parametrize(
    ("path", "method", "headers", "status"),
    [
        pytest.param(CONFIG_MAPS, "POST", {}, 403, id="a write without the token"),
        pytest.param(CONFIG_MAPS, "POST", {"X-Fakeapiserver-Token": "guessed"}, 403, id="a write with another token"),
        pytest.param(CONFIG_MAPS, "DELETE", {"Origin": "https://example.com"}, 403, id="a write of another origin"),
        pytest.param(CONFIG_MAPS, "GET", {"Sec-Fetch-Site": "cross-site"}, 403, id="a read of another site"),
        pytest.param(CONFIG_MAPS, "GET", {"Sec-Fetch-Site": "same-site"}, 403, id="a read of another port"),
        pytest.param("/ui/session", "GET", {"Sec-Fetch-Site": "same-site"}, 403, id="the token for another port"),
        pytest.param(CONFIG_MAPS, "GET", {"Origin": "null"}, 403, id="a read of a sandboxed page"),
        pytest.param(CONFIG_MAPS, "GET", {"Host": "rebound.example.com"}, 403, id="a foreign host"),
        pytest.param("/ui/", "GET", {"Host": "rebound.example.com:80"}, 403, id="the page at a foreign host"),
        pytest.param("/ui/", "GET", {"Host": "localhost:1"}, 200, id="a tunnel's port"),
        pytest.param("/ui/", "GET", {"Host": "[::1]:1"}, 200, id="an address of IPv6"),
        pytest.param("/ui/", "POST", {}, 405, id="a write to the page"),
        pytest.param("/ui/login?code=", "GET", {}, 401, id="a link without a code"),
        pytest.param("/ui/../sessions.py", "GET", {}, 404, id="a path outside of the page's files"),
        pytest.param("/ui/none.js", "GET", {}, 404, id="a file that there isn't"),
        pytest.param("/api/v1/pods", "GET", {"Upgrade": "websocket"}, 403, id="a socket without the token"),
        pytest.param(CONFIG_MAPS, "GET", {"Cookie": 'a=b; ;;="x'}, 401, id="cookies of others"),
    ],
)
def test_what_is_let_in(browser: Browser, path: str, method: str, headers: Mapping[str, str], status: int) -> None:
    assert browser.request(path, method, CREATED if method == "POST" else None, headers)[0] == status


def test_the_port_without_tls_takes_no_other_credentials(cluster: Cluster) -> None:
    stranger = Browser(cluster.page.link())
    status, text, _ = stranger.request(CONFIG_MAPS, headers={"Authorization": f"Bearer {cluster.token}"})
    assert status == 401
    assert "fakeapiserver ui" in text
    assert stranger.request("/ui/")[0] == 200, "the page itself has no data"
    assert stranger.request("/ui/session")[0] == 401


def test_the_page_is_served_with_a_strict_policy(browser: Browser) -> None:
    status, text, headers = browser.request("/ui/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<html" in text
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert browser.request("/ui/", headers={"If-None-Match": headers["etag"]})[0] == 304
    assert browser.request("/ui")[2]["location"] == "/ui/"


def test_other_answers_to_a_browser_can_do_nothing_in_it(browser: Browser) -> None:
    headers = browser.request(CONFIG_MAPS)[2]
    assert headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    docs = browser.request("/fakeapiserver/docs")[2]
    assert "sandbox" not in docs["content-security-policy"]


def test_a_cluster_without_a_page_says_so() -> None:
    with Cluster(controllers=()) as cluster, pytest.raises(ValueError, match="create it with ui=True"):
        cluster.page.link()


def test_links_and_sessions_are_bounded_and_the_oldest_go_first() -> None:
    sessions = Sessions()
    codes = [sessions.new_code() for _ in range(65)]
    assert sessions.log_in(codes[0]) is None
    secrets = [sessions.log_in(code) for code in codes[1:]]
    assert None not in secrets
    another = sessions.log_in(sessions.new_code())
    assert another is not None
    assert (sessions.token(str(secrets[0])), sessions.is_token(str(secrets[0]), "")) == (None, False)
    assert sessions.is_token(another, str(sessions.token(another)))
    assert not sessions.is_token(another, "é")
