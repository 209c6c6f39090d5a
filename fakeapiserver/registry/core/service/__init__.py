"""Services, and the addresses and ports that the server allocates to them."""
