"""The subresources: status, scale, binding, eviction and tokens."""
