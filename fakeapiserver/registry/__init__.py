"""The rules of each resource, a package for each API group, and the generic store that all resources share."""
