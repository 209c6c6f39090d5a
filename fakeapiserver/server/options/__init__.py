"""What flags and configuration files ask for: authenticators, authorizers and the admission chain are built here."""
