"""Media types: which form a client sends and accepts, and objects in each form."""
