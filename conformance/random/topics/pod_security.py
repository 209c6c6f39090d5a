"""Random pods and workloads in namespaces with Pod Security levels."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from conformance.random.topics.topic import NAMES, Object, Request, Topic, as_user, patch, post


class PodSecurity(Topic):
    _PREFIX: Final = "pod-security.kubernetes.io/"

    def setup(self) -> Iterable[Request]:
        if self.chance(0.15):
            self.namespace = "exempt-1"
        yield self.create_namespace({"labels": self._labels()})
        for name, handler in (("exempt", "h"), ("plain", "h")):
            yield post("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": name}, "handler": handler})

    def _labels(self, bad: float = 0.03) -> Object:
        found = {}
        for mode in self.some(("enforce", "warn", "audit"), 0.6):
            found[self._PREFIX + mode] = (
                "wrong"
                if self.chance(bad)
                else self.pick("baseline", "restricted", "restricted", "privileged", "baseline")
            )
        for mode in self.some(("enforce", "warn", "audit"), 0.4):
            version = (
                "1.2"
                if self.chance(bad)
                else self.pick(
                    "latest",
                    *(f"v1.{minor}" for minor in (0, 7, 8, 18, 19, 21, 22, 23, 24, 25, 27, 29, 31, 32, 34, 35, 36, 99)),
                )
            )
            found[f"{self._PREFIX}{mode}-version"] = version
        if self.chance(0.1):
            found[self._PREFIX + "other"] = "x"
        return found

    def request(self) -> Request:
        request = self._request()
        return as_user(request, self.pick("trusted", "somebody"), "system:masters") if self.chance(0.1) else request

    def _request(self) -> Request:
        namespace = f"/api/v1/namespaces/{self.namespace}"
        if self.chance(0.1):
            labels = {
                self._PREFIX + key: None for key in self.some(("enforce", "warn", "audit", "enforce-version"), 0.3)
            } | self._labels(0.2)
            query = self.pick("", "", "?dryRun=All")
            return patch(namespace + query, {"metadata": {"labels": labels}})
        if self.chance(0.03):
            return post(
                "/api/v1/namespaces?dryRun=All",
                {"metadata": {"name": self.pick("made", "exempt-1"), "labels": self._labels(0.3)}},
            )
        if self.chance(0.25):
            return self._controller()
        return self.any_pod_request(
            lambda: {
                "metadata": {"name": self.pick(*NAMES), **self._owners(), **self._annotations()},
                "spec": self.secured_spec(),
            }
        )

    def _owners(self) -> Object:
        if self.chance(0.8):
            return {}
        return {
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "r",
                    "uid": self.pick("u1", "u2"),
                    "controller": True,
                }
            ]
        }

    def _annotations(self) -> Object:
        if self.chance(0.8):
            return {}
        return {
            "annotations": self.pick(
                {"seccomp.security.alpha.kubernetes.io/pod": self.pick("unconfined", "runtime/default", "localhost/x")},
                {
                    "container.apparmor.security.beta.kubernetes.io/c0": self.pick(
                        "unconfined", "runtime/default", "localhost/x"
                    )
                },
                {"container.seccomp.security.alpha.kubernetes.io/c0": self.pick("unconfined", "runtime/default")},
            )
        }

    def _controller(self) -> Request:
        template = {"metadata": {"labels": {"a": "b"}, **self._annotations()}, "spec": self.secured_spec()}
        selector = {"matchLabels": {"a": "b"}}
        never = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
        kinds: Mapping[str, tuple[str, str, Object]] = {
            "podtemplates": ("v1", "PodTemplate", {"template": template}),
            "replicationcontrollers": (
                "v1",
                "ReplicationController",
                {"spec": {"selector": {"a": "b"}, "template": template}},
            ),
            "deployments": ("apps/v1", "Deployment", {"spec": {"selector": selector, "template": template}}),
            "daemonsets": ("apps/v1", "DaemonSet", {"spec": {"selector": selector, "template": template}}),
            "replicasets": ("apps/v1", "ReplicaSet", {"spec": {"selector": selector, "template": template}}),
            "statefulsets": (
                "apps/v1",
                "StatefulSet",
                {"spec": {"selector": selector, "serviceName": "s", "template": template}},
            ),
            "jobs": ("batch/v1", "Job", {"spec": {"template": never}}),
            "cronjobs": (
                "batch/v1",
                "CronJob",
                {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": never}}}},
            ),
        }
        resource = self.pick(*kinds)
        group, kind, content = kinds[resource]
        path, name = self.path(resource, group), self.pick("w1", "w2")
        if self.chance(0.15):
            return self.delete(f"{path}/{name}")
        return self.write(path, {"metadata": {"name": name}, **content}, (group, kind))

    def secured_spec(self) -> Object:
        spec = self.pod_spec(False)
        level = self.pick(0.0, 0.05, 0.15)  # how odd it is
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            if self.chance(0.7):
                container["securityContext"] = self._context(level)
            if self.chance(level):
                container["ports"] = [{"containerPort": 80, "hostPort": self.pick(80, 0, 81)}]
            if self.chance(level):
                handler = self.pick(
                    {"httpGet": {"port": 80, "host": self.pick("h", "")}}, {"tcpSocket": {"port": 80, "host": "h"}}
                )
                container.update(
                    self.pick(
                        {"livenessProbe": handler}, {"lifecycle": {"postStart": handler}}, {"readinessProbe": handler}
                    )
                )
        if self.chance(0.6):
            spec["securityContext"] = self._pod_context(level)
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            if self.chance(level):
                spec[field] = self.pick(True, False)
        if self.chance(level):
            spec["hostUsers"] = self.pick(True, False)
        if self.chance(level):
            spec["os"] = {"name": self.pick("windows", "linux")}
        if self.chance(0.1):
            spec["runtimeClassName"] = self.pick("exempt", "plain")
        if self.chance(0.4):
            spec["volumes"] = [{"name": f"v{i}", **self._volume(level)} for i in range(self.pick(1, 2))]
        return spec

    def _volume(self, level: float) -> Any:
        good: tuple[Object, ...] = (
            {"emptyDir": {}},
            {"configMap": {"name": "c"}},
            {"secret": {"secretName": "s"}},
            {"projected": {"sources": []}},
            {},
        )
        bad = (
            {"hostPath": {"path": "/x"}},
            {"nfs": {"server": "s", "path": "/p"}},
            {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}},
            {"image": {"reference": "r"}},
            {"csi": {"driver": "d.example.com"}},
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                    }
                }
            },
            {"gcePersistentDisk": {"pdName": "p"}},
        )
        return self.pick(*bad) if self.chance(3 * level) else self.pick(*good)

    def _seccomp(self, level: float) -> Object:
        if self.chance(level):
            return {"type": self.pick("Unconfined", "Localhost"), **self.pick({}, {"localhostProfile": "p"})}
        return {"type": "RuntimeDefault"}

    def _context(self, level: float) -> Object:
        found: Object = {}
        if self.chance(0.8):
            found["allowPrivilegeEscalation"] = self.chance(level)
        if self.chance(0.8):
            found["capabilities"] = {"drop": ["all" if self.chance(level) else "ALL"]}
            if self.chance(2 * level):
                found["capabilities"]["add"] = self.some(
                    ("NET_BIND_SERVICE", "CHOWN", "SYS_ADMIN", "NET_RAW", "KILL"), 0.4
                )
        if self.chance(0.6):
            found["runAsNonRoot"] = not self.chance(level)
        if self.chance(0.6):
            found["seccompProfile"] = self._seccomp(level)
        if self.chance(level):
            found["privileged"] = self.pick(True, False)
        if self.chance(level):
            found["procMount"] = self.pick("Default", "Unmasked")
        if self.chance(level):
            found["runAsUser"] = self.pick(0, 1000)
        if self.chance(level):
            found["seLinuxOptions"] = self._selinux()
        if self.chance(level):
            found["appArmorProfile"] = self.pick(
                {"type": "Unconfined"}, {"type": "RuntimeDefault"}, {"type": "Localhost", "localhostProfile": "p"}
            )
        if self.chance(level):
            found["windowsOptions"] = {"hostProcess": self.pick(True, False)}
        return found

    def _selinux(self) -> Object:
        options: Object = {"type": self.pick("container_t", "container_init_t", "container_engine_t", "spc_t", "")}
        return options | dict(self.pick({}, {"user": "u"}, {"role": "r"}, {"user": "u", "role": "r"}))

    def _pod_context(self, level: float) -> Object:
        found: Object = {}
        if self.chance(0.6):
            found["runAsNonRoot"] = not self.chance(level)
        if self.chance(0.6):
            found["seccompProfile"] = self._seccomp(level)
        if self.chance(level):
            found["runAsUser"] = self.pick(0, 1000)
        if self.chance(level):
            found["seLinuxOptions"] = self._selinux()
        if self.chance(level):
            found["appArmorProfile"] = self.pick({"type": "Unconfined"}, {"type": "RuntimeDefault"})
        if self.chance(level):
            names = (
                "kernel.shm_rmid_forced",
                "net.ipv4.ip_local_port_range",
                "net.ipv4.tcp_keepalive_time",
                "net.ipv4.tcp_rmem",
                "kernel.msgmax",
                "net.ipv4.ip_local_reserved_ports",
            )
            found["sysctls"] = [{"name": name, "value": "1"} for name in self.some(names, 0.4)]
        if self.chance(level):
            found["windowsOptions"] = {"hostProcess": self.pick(True, False)}
        return found
