"""Serves custom resources: CustomResourceDefinitions are established, served and finalized (upstream: k8s.io/apiextensions-apiserver)."""
