"""The life of a pod on a node, step by step. Pure."""
