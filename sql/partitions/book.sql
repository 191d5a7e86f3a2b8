-- Books the messages of a detached partition as deleted ones are booked (functions/install_retired_trigger): their
-- counts, also in the histograms of times, and their ids, and with receiptd.stream = 'on' their tombstones. It
-- forgets which of their parts are delivered. It runs in a transaction that keeps all others from changing the
-- partition. Variables: part_schema, part; message_id,
-- campaign_id, status, flags: its columns. Returns messages. The hashes come in the order of their index, so that
-- each of its pages is touched once.
WITH counted AS (
    INSERT INTO campaign_retired (campaign_id, status, flags, messages)
    SELECT COALESCE(p.:"campaign_id"::text COLLATE "C", ''), p.:"status", p.:"flags", count(*)
    FROM ONLY :"part_schema".:"part" p
    GROUP BY 1, 2, 3
    RETURNING messages
),
remembered AS (
    INSERT INTO retired_message (hash)
    SELECT hashtextextended(p.:"message_id"::text COLLATE "C", 0) FROM ONLY :"part_schema".:"part" p ORDER BY 1
),
streamed AS (
    INSERT INTO stream_event (ids, kind)
    SELECT array_agg(g.id), 'gone'
    FROM (SELECT p.:"message_id"::text AS id, row_number() OVER () / 1000 AS page
          FROM ONLY :"part_schema".:"part" p) g
    WHERE current_setting('receiptd.stream', true) = 'on' GROUP BY g.page
),
forgotten AS (
    DELETE FROM message_part d USING ONLY :"part_schema".:"part" p
    WHERE d.message_id = p.:"message_id"::text COLLATE "default"
      AND (SELECT true FROM message_inbox m WHERE m.message_id = d.message_id LIMIT 1) IS NULL
)
SELECT COALESCE(sum(c.messages), 0)::int8 AS messages,
       book_forgotten(format('%I.%I', :'part_schema', :'part')::regclass, :'campaign_id', :'status') AS forgotten
FROM counted c;
