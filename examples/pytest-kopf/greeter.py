"""An operator that keeps a ConfigMap for each Greeting."""

import kopf
from kubernetes import client, config


@kopf.on.startup()
def connect(**_: object) -> None:
    config.load_kube_config()


@kopf.on.create("example.com", "v1", "greetings", backoff=1)
@kopf.on.update("example.com", "v1", "greetings", backoff=1)
def write(name: str, namespace: str, spec: kopf.Spec, patch: kopf.Patch, **_: object) -> None:
    greeting = {"metadata": {"name": name}, "data": {"text": spec["text"]}}
    kopf.adopt(greeting)
    core = client.CoreV1Api()
    try:
        core.create_namespaced_config_map(namespace, greeting)
    except client.ApiException as error:
        if error.status != 409:
            raise
        core.patch_namespaced_config_map(name, namespace, greeting)
    patch.status["text"] = spec["text"]
