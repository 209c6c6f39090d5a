"""The state of a cluster as a value: saved files, differences, manifests."""
