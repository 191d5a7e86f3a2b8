"""scripts/rolling: see __main__.py."""
