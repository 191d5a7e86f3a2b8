"""scripts/campaign reloads: see __main__.py."""
