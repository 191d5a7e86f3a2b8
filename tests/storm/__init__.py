"""The command behind scripts/intake."""
