"""kube-controller-manager's controllers, one file or folder each, unaware of each other.

Each has `new(context) -> Sequence[Controller]`: what it runs, made but not started. controller_manager/descriptor.py lists them.
"""
