"""The independent oracle: what receiptd has to arrive at, computed from the definition and from nothing else."""
