"""The apiextensions.k8s.io group, and what custom resources are made of."""

from fakeapiserver.registry.apiextensions.customresourcedefinition import CustomResourceDefinitionStrategy

RESOURCES = {
    "customresourcedefinitions": CustomResourceDefinitionStrategy(
        has_generation=True,
        declares_rules=False,
        ends_in_two_steps=True,
        null_rows=True,
        kube_finalizers=False,
        allow_unconditional_update=False,
        status_disowned_until={"v1.35": ("spec", "metadata")},
    )
}
