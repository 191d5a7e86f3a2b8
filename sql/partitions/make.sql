-- Makes a table that is to become a partition of the own inbox. Variables: part (its name), owner, fillfactor.
-- search_path = the schema. The settings are those of migrate/inbox_table.sql.
CREATE TABLE :"part" (LIKE message_inbox INCLUDING DEFAULTS, PRIMARY KEY (message_id)) WITH (
    fillfactor = :fillfactor,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1
);
CREATE INDEX ON :"part" (campaign_id);
ALTER TABLE :"part" OWNER TO :"owner";
