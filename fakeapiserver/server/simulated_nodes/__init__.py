"""The kubelets of simulated nodes as seen from outside: their HTTPS port, their usage, their readiness."""
