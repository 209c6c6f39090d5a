"""The kinds and resources of each Kubernetes version, as recorded data."""
