-- Puts the trigger on the inbox that counts the root (TARGETED), and makes its function, count_inserted(). migrate
-- runs this again where this file has changed.
--
-- in_schema, in_table: the base table (our schema and message_inbox unless mapped). message_id, org_id, campaign_id,
-- status, flags: its columns. kinds, dimensions: as for inbox_dimensions(); group_kinds, groups: as for
-- inbox_groups(). Raises 42804 or 42703 where check_inbox_columns() refuses a column.
--
-- A statement trigger fires for the table that the statement names. So each partition gets one as well, for rows that
-- are inserted into it directly: with an argument, by which count_inserted() knows it.
--
-- count_inserted() adds one delta row per INSERT statement, however many rows that brings (COPY too). It counts the
-- whole path of a row's status and its flags, so that an insert of a row that is not fresh stays exact. It also notes
-- which organisations have messages in a campaign.
--
-- It is SECURITY DEFINER, since the platform's role has no right on the counters. It has the rights of a role that
-- can append to them and nothing else (migrate/definer_counter.sql). Its search path is fixed, with pg_temp last, so
-- that no role can slip in tables. The statements before the counting make sure that every type is PostgreSQL's own
-- (below 16384). They are statements of their own, because PL/pgSQL analyses a statement when it gets there: before
-- that it does not even search for a foreign cast. The two calls are for the rare cases (a table under a new name, a
-- domain) and say what is wrong.
CREATE OR REPLACE FUNCTION install_inbox_trigger(in_schema text, in_table text, message_id text,
                                                 org_id text, campaign_id text, status text,
                                                 flags text, kinds text[], dimensions text[],
                                                 group_kinds text[], groups text[])
RETURNS void LANGUAGE plpgsql AS $install$
DECLARE
    base text := format('%I.%I', in_schema, in_table);
    columns text[] := ARRAY(SELECT DISTINCT unnest(ARRAY[org_id, campaign_id, status, flags] || dimensions ||
                                                  CASE WHEN groups = '{}' THEN '{}' ELSE message_id || groups END));
    target record;
BEGIN
    PERFORM check_inbox_columns(to_regclass(base), columns);
    EXECUTE format($function$
        CREATE OR REPLACE FUNCTION count_inserted() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = %1$I, pg_temp AS $body$
        BEGIN
            IF TG_NARGS > 0 THEN
                IF NOT partition_is_counted(TG_RELID, TG_NAME) THEN
                    RETURN NULL;
                END IF;
            ELSIF TG_TABLE_SCHEMA <> %5$L OR TG_TABLE_NAME <> %9$L THEN
                PERFORM check_counted(TG_RELID, to_regclass(%6$L));
            END IF;
            IF (SELECT count(*) FROM pg_attribute a
                WHERE a.attrelid = TG_RELID AND a.attname = ANY (%7$L::name[]) AND a.atttypid < 16384) <> %8$s THEN
                PERFORM check_inbox_columns(TG_RELID, %7$L);
            END IF;
            WITH groups AS (
                SELECT COALESCE(i.%2$I::text COLLATE "C", '') AS campaign,
                       i.%3$I AS status, i.%4$I AS flags, count(*) AS n
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
            INSERT INTO counter_delta (kind, campaign_id, status, messages, events)
            SELECT 'funnel', array_agg(s.campaign), array_agg(s.code), array_agg(s.n), array_agg(0)
            FROM (SELECT campaign, code, sum(n) AS n FROM counts GROUP BY campaign, code) s
            HAVING count(*) > 0;%11$s
            INSERT INTO campaign_organisation (campaign_id, org_id)
            SELECT n.campaign, n.org
            FROM (SELECT DISTINCT COALESCE(i.%2$I::text COLLATE "C", '') AS campaign,
                                  COALESCE(i.%10$I::text COLLATE "C", '') AS org
                  FROM inserted i) n
            WHERE NOT EXISTS (SELECT FROM campaign_organisation o
                              WHERE o.campaign_id = n.campaign AND o.org_id = n.org);
            RETURN NULL;
        END
        $body$
    $function$, current_schema(), campaign_id, status, flags, in_schema, format('%I.message_inbox', current_schema()),
        columns, cardinality(columns), in_table, org_id,
        inbox_dimensions(kinds, dimensions, campaign_id, status, flags)
            || inbox_groups(group_kinds, groups, message_id, campaign_id, status, flags));
    -- A role that may execute it could put it on a table of its own and forge counters.
    REVOKE ALL ON FUNCTION count_inserted() FROM PUBLIC;
    FOR target IN SELECT * FROM inbox_trigger_targets(to_regclass(base)) LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER receiptd_count_inserted AFTER INSERT ON %s '
                       'REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION count_inserted(%s)',
                       target.name, target.argument);
    END LOOP;
END
$install$;
