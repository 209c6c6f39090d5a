"""Traffic on a server that keeps its state, while it is killed and started again; and what must be true of everything that clients saw."""
