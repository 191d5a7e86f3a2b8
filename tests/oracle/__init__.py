"""The independent oracle: the result that receiptd must reach, computed from the definition and from nothing else."""
