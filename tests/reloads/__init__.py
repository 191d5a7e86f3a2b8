"""scripts/reloads: see __main__.py."""
