"""Well-known operators' definitions and samples, as their projects publish them, on a real server and on another one."""
