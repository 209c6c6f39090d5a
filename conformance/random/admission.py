"""Settings and requests for each group of admission plugins, from one random source: what `conformance.compare.access.admission` sends."""

from collections.abc import Iterable, Mapping
from typing import Final

from conformance.random.topics.nodes import Nodes
from conformance.random.topics.others import Classes, Events, Lifecycle, Owners, Services
from conformance.random.topics.pod_security import PodSecurity
from conformance.random.topics.pods import Accounts, Priority, RuntimeClass, Selectors, Tolerations
from conformance.random.topics.quotas import LimitRanger, ResourceQuota
from conformance.random.topics.topic import Object, Request, Topic


class Everything(Topic):
    """Pods that several plugins reject: only the first plugin's error is reported."""

    def setup(self) -> Iterable[Request]:
        parts = [topic(self.random, self.namespace) for topic in (LimitRanger, ResourceQuota, PodSecurity)]
        self.ranges, self.quotas, self.security = parts
        labels = {f"pod-security.kubernetes.io/{mode}": "baseline" for mode in self.some(("enforce", "warn"), 0.6)}
        yield self.create_namespace({"labels": labels})
        for topic in (self.ranges, self.quotas):
            yield from list(topic.setup())[1:]

    def request(self) -> Request:
        def pod() -> Object:
            found = self.pod()
            spec = found["spec"]
            if self.chance(0.3):
                spec["priorityClassName"] = self.pick("bronze", "lost")
            if self.chance(0.3):
                spec["runtimeClassName"] = self.pick("plain", "lost")
            if self.chance(0.3):
                spec["hostNetwork"] = True
            if self.chance(0.2):
                spec["overhead"] = {"cpu": "1"}
            if self.chance(0.2):
                spec["containers"][0]["image"] = ""
            if self.chance(0.1):
                found["metadata"]["name"] = "A_"
            return found

        if self.chance(0.05):
            return {"method": "DELETE", "path": self.path("pods") + self.pick("", "?dryRun=All")}
        return self.any_pod_request(pod)


TOPICS: Final[Mapping[str, type[Topic]]] = {
    topic.__name__: topic
    for topic in (
        LimitRanger,
        ResourceQuota,
        PodSecurity,
        Priority,
        RuntimeClass,
        Classes,
        Nodes,
        Tolerations,
        Selectors,
        Owners,
        Events,
        Services,
        Lifecycle,
        Accounts,
        Everything,
    )
}
