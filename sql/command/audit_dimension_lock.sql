-- Serialises repairs of dimensions, as audit_lock.sql those of funnels.
LOCK TABLE campaign_tally_total IN SHARE ROW EXCLUSIVE MODE;
