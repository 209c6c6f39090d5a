"""The versions of Kubernetes whose expressions differ. Upstream: k8s.io/apiserver/pkg/cel/environment/base.go."""

from typing import Final

V1_37: Final = "v1.37"  # cel-go 0.29
NEWEST: Final = V1_37
