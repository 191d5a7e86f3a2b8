-- Serialises repairs, in the transaction of audit_repair.sql and before it, as a statement of its own. A lock taken
-- inside the repair would come after its snapshot, and the second of two repairs would repair twice. Roll-ups wait
-- meanwhile, since they write the totals. Lanes do not: they only append deltas.
LOCK TABLE campaign_funnel_total IN SHARE ROW EXCLUSIVE MODE;
