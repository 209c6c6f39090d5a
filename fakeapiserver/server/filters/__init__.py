"""The filters that a request passes before its handler: deadline, audit, impersonation, priority and fairness."""
