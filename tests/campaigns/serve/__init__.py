"""Requests of all kinds to receiptd serve (scripts/campaign serve)."""
