"""Small operators with published bugs that show with certain specs, whatever the cluster does.

Acto (SOSP 2023) lists such bugs. Each module has what those in the folder above have. Its `STEPS` create the custom resource, and its
`FINDINGS` are what an exploration reports about changes of the spec. `IGNORED` are fields that have no effect.
"""
