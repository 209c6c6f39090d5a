"""Client certificates, read and verified as Go does (upstream: crypto/x509, crypto/internal/cryptobyte)."""
