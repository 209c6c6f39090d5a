"""The standard functions of CEL, and the extensions for lists, sets and optionals; `table.py` has them by overload.

Upstream: github.com/google/cel-go/{common/stdlib,common/types,cel/library.go,ext/lists.go,ext/sets.go},
k8s.io/apiserver/pkg/cel/library/lists.go
"""
