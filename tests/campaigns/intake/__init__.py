"""The command behind scripts/campaign intake."""
