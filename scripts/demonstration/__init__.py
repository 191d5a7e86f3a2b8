"""What scripts/demo shows: campaigns, a stream of receipts with an exact ledger, a live view, the comparison."""
