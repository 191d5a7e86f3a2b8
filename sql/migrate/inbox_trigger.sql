-- Counts the root (TARGETED): only the platform knows when a row is born. For inbox.targeted = trigger.
-- Variables: inbox_schema, inbox_table (the base table: our schema and message_inbox unless mapped), and the names there of
-- campaign_id, status, flags. Can be run again; inbox_trigger_drop.sql takes it away.
--
-- One delta row per INSERT statement, however many rows it brings (COPY too). The whole path of a row's status and its
-- flags are counted, so that an insert which is not of a fresh row stays exact. SECURITY DEFINER, since the platform's role
-- has no right on the counters: with the rights of a role that can append to them and nothing else (definer_counter.sql). The search
-- path is fixed, with pg_temp last, so that nobody can slip in tables. What comes before the counting sees to it that no type is
-- used but PostgreSQL's own (below 16384); in statements of its own, for PL/pgSQL analyses a statement when it gets there, so
-- that no cast is even looked up before. The two calls are for the rare cases (a table under a new name, a domain) and for saying
-- what is wrong.
CREATE OR REPLACE FUNCTION install_inbox_trigger(in_schema text, in_table text, campaign_id text, status text, flags text)
RETURNS void LANGUAGE plpgsql AS $install$
DECLARE
    base text := format('%I.%I', in_schema, in_table);
    columns text[] := ARRAY[campaign_id, status, flags];
BEGIN
    PERFORM check_inbox_columns(to_regclass(base), columns);
    EXECUTE format($function$
        CREATE OR REPLACE FUNCTION count_inserted() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = %1$I, pg_temp AS $body$
        BEGIN
            IF TG_TABLE_SCHEMA <> %5$L OR TG_TABLE_NAME <> %9$L THEN
                PERFORM check_counted(TG_RELID, to_regclass(%6$L));
            END IF;
            IF (SELECT count(*) FROM pg_attribute a
                WHERE a.attrelid = TG_RELID AND a.attname = ANY (%7$L::name[]) AND a.atttypid < 16384) <> %8$s THEN
                PERFORM check_inbox_columns(TG_RELID, %7$L);
            END IF;
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
    $function$, current_schema(), campaign_id, status, flags, in_schema, format('%I.message_inbox', current_schema()), columns,
        cardinality(columns), in_table);
    -- Who may execute it could put it on a table of his own and forge counters.
    REVOKE ALL ON FUNCTION count_inserted() FROM PUBLIC;
    EXECUTE format('CREATE OR REPLACE TRIGGER receiptd_count_inserted AFTER INSERT ON %s '
                   'REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION count_inserted()', base);
END
$install$;
REVOKE ALL ON FUNCTION install_inbox_trigger(text, text, text, text, text) FROM PUBLIC;

SELECT install_inbox_trigger(:'inbox_schema', :'inbox_table', :'campaign_id', :'status', :'flags');
