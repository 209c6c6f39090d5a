"""Pure API machinery: no asyncio, sockets, clocks or random sources; those are passed in."""
