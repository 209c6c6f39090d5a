"""The sentences of "why" in a running cluster: the causes of an object's or a request's state, and the problems that are found unasked."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from fakeapiserver import Cluster

_FOUND: Final = """async (ref) => {
  const [{ why }, { problems }, { Recording }, { openSource }] =
    await Promise.all(["why", "problems", "recording", "source"].map((name) => import(`/ui/${name}.js`)));
  const recording = new Recording();
  const lines = (await (await fetch("/fakeapiserver/timeline")).text()).split("\\n").filter(Boolean);
  recording.add(lines.map((line) => JSON.parse(line)));
  const source = await openSource();
  const title = (parts) => parts.map((part) => part.label ?? part).join("");
  const texts = (causes) => causes.flatMap((cause) => [cause.text, ...texts(cause.because)]);
  if (!ref) return (await problems(recording, source)).map((one) => [title(one.title), ...texts(one.causes)].join("\\n"));
  if (ref.refused) ref = { request: recording.requests.findLast((one) => one.client === ref.refused && one.status >= 400).seq };
  return texts(await why(recording, source, ref));
}"""


@contextmanager
def shown(browser: Any, cluster: Cluster) -> Iterator[Any]:
    """The page of a cluster, logged in."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(cluster.page.link())
    yield page
    context.close()


def causes(page: Any, ref: Mapping[str, str]) -> list[str]:
    """The sentences that say why an object ({r, ns, name}) is as it is, or why the last refused request of a client ({refused}) was."""
    found: list[str] = page.evaluate(_FOUND, ref)
    return found


def problems(page: Any) -> list[str]:
    """The title and the causes of each problem that the page finds unasked, line by line."""
    found: list[str] = page.evaluate(_FOUND, None)
    return found
