"""scripts/campaign rolling: see __main__.py."""
