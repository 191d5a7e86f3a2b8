"""Real processes under real faults: a campaign of seeded cycles, each judged by the exact ledger."""
