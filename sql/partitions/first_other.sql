-- The default partition of a new inbox: it takes messages whose ids have no partition. Variables: fillfactor. The
-- settings are those of migrate/inbox_table.sql.
CREATE TABLE message_inbox_other PARTITION OF message_inbox DEFAULT WITH (
    fillfactor = :fillfactor,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1
);
