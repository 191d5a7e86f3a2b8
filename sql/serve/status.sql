-- GET /status, from the database: $1 text organisation, which only hides what belongs to none. Members parked and
-- letters are exact up to 10 000. Above it they are estimates, which parked_is_estimate and letters_is_estimate say
-- (held_count).
WITH held AS MATERIALIZED (
    SELECT c.what, c.rows, c.is_estimate FROM held_count c WHERE $1::text IS NULL
)
SELECT json_build_object(
    'instance', NULL, 'ready', true,
    'partitions', (SELECT COALESCE(json_agg(json_build_object(
        'topic', p.topic, 'partition', p.partition, 'position', p.position, 'lag', NULL,
        'newest_at', to_char(p.newest_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
        ORDER BY p.topic, p.partition), '[]')
        FROM partition_position p WHERE $1::text IS NULL),
    'parked', (SELECT h.rows FROM held h WHERE h.what = 'parked'),
    'parked_is_estimate', (SELECT h.is_estimate FROM held h WHERE h.what = 'parked'),
    'letters', (SELECT h.rows FROM held h WHERE h.what = 'letters'),
    'letters_is_estimate', (SELECT h.is_estimate FROM held h WHERE h.what = 'letters'),
    'daemons', (SELECT COALESCE(json_agg(json_build_object('instance', d.instance, 'sessions', d.sessions)
                                         ORDER BY d.instance), '[]')
        FROM (SELECT split_part(a.application_name, '/', 2) AS instance, count(*) AS sessions FROM pg_stat_activity a
              WHERE $1::text IS NULL
                AND a.datname = current_database()
                AND a.application_name ~ '^receiptd/[^/]*/(control|lane-)'
                AND has_table_privilege(a.usesysid, 'consumer_progress'::regclass, 'UPDATE') GROUP BY 1) d),
    'instances', (SELECT COALESCE(json_agg(json_build_object(
        'name', i.name, 'at', to_char(i.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'age_s', GREATEST(round(extract(epoch FROM now() - i.at)::numeric, 1), 0), 'status', i.document)
        ORDER BY i.name), '[]')
        FROM instance_status i WHERE $1::text IS NULL),
    'as_of', (SELECT to_char(max(c.newest_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
              FROM partition_position c),
    'behind_s', (SELECT b.behind_s FROM counters_behind b))::text AS body;
