-- Serialises repairs: an earlier statement of the same transaction as audit_repair.sql, never the same one: a lock
-- taken inside the statement comes after its snapshot, and the second of two repairs would repair twice. Roll-ups wait
-- meanwhile (they write the totals); lanes do not (they only append deltas).
LOCK TABLE campaign_funnel_total IN SHARE ROW EXCLUSIVE MODE;
