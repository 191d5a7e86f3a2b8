-- Counts the root (TARGETED): only the platform knows when a row is born. For inbox.targeted = trigger.
-- Variables: inbox_schema, inbox_table (the base table: our schema and message_inbox unless mapped), and the names there of
-- campaign_id, status, flags. Can be run again; inbox_trigger_drop.sql takes it away.
--
-- One delta row per INSERT statement, however many rows it brings (COPY too). The whole path of a row's status and its
-- flags are counted, so that an insert which is not of a fresh row stays exact. SECURITY DEFINER, since the platform's role
-- has no right on the counters; the search path is fixed, with pg_temp last, so that nobody can slip in tables.
CREATE OR REPLACE FUNCTION install_inbox_trigger(in_schema text, in_table text, campaign_id text, status text, flags text)
RETURNS void LANGUAGE plpgsql AS $install$
BEGIN
    EXECUTE format($function$
        CREATE OR REPLACE FUNCTION count_inserted() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = %1$I, pg_temp AS $body$
        BEGIN
            WITH groups AS (
                SELECT COALESCE(i.%2$I::text, '') AS campaign, i.%3$I AS status, i.%4$I AS flags, count(*) AS n
                FROM inserted i
                GROUP BY 1, 2, 3
            ), counts AS (
                SELECT g.campaign, p.ancestor AS code, g.n
                FROM groups g JOIN status_path p ON p.code = g.status
                UNION ALL
                SELECT g.campaign, 9001 + bit, g.n
                FROM groups g, generate_series(0, 30) bit
                WHERE g.flags <> 0 AND (g.flags >> bit) & 1 = 1
            )
            INSERT INTO campaign_funnel_delta (campaign_id, status, messages, events)
            SELECT array_agg(s.campaign), array_agg(s.code), array_agg(s.n), array_agg(0)
            FROM (SELECT campaign, code, sum(n) AS n FROM counts GROUP BY campaign, code) s
            HAVING count(*) > 0;
            RETURN NULL;
        END
        $body$
    $function$, current_schema(), campaign_id, status, flags);
    -- Who may execute it could put it on a table of his own and forge counters.
    REVOKE ALL ON FUNCTION count_inserted() FROM PUBLIC;
    EXECUTE format('CREATE OR REPLACE TRIGGER receiptd_count_inserted AFTER INSERT ON %I.%I '
                   'REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION count_inserted()',
                   in_schema, in_table);
END
$install$;

SELECT install_inbox_trigger(:'inbox_schema', :'inbox_table', :'campaign_id', :'status', :'flags');
