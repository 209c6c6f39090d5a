"""Shared code of the workload controllers: pods, revisions, expectations and ownership."""
