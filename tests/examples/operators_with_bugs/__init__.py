"""Small operators, each with a bug that has been published for operators that people use, and repaired.

Sieve (Automatic Reliability Testing for Cluster Management Controllers, OSDI 2022) and Acto (Automatic End-to-End Testing for Operation
Correctness of Cloud System Management, SOSP 2023) list the bugs that they found. Each module here has one pattern of those lists: what the
operator reads and writes, and in which order, and the issues in which the pattern was reported.

A module has `setup(manager, bug)`, the fields `SPEC` of its custom resource, the `STEPS` of a scenario, and what a sweep (`SURPRISE`) or
an exploration (`CHANGE`) reports: `FINDING`.
"""
