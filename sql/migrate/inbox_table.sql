-- Our own inbox, the default. Variables: inbox_definitions, its columns (include/receiptd/config/inbox_columns.h);
-- fillfactor (50: all rows of a page can be updated once without a new index entry). The platform inserts message_id,
-- org_id and campaign_id and never touches the rest. Only columns that never change are indexed: an index on status
-- would end HOT updates.
CREATE TABLE message_inbox (
    :inbox_definitions
) WITH (
    fillfactor = :fillfactor,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1
);
-- For the audit, campaign by campaign.
CREATE INDEX message_inbox_campaign ON message_inbox (campaign_id);
