"""The objects that the server itself creates and keeps: default objects, addresses, Leases, statuses."""
