-- Version 1 of receiptd's tables, views and functions. No variables; search_path = the configured schema.
-- The inbox comes separately: inbox_table.sql (our own) or inbox_view.sql (an existing table), then inbox_trigger.sql.
-- Texts are COLLATE "C": one total order for us (memcmp) and for PostgreSQL, whatever the database's locale is.

CREATE TABLE schema_version (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- The ladder, as the configuration has it; filled by ladder_fill(), pinned by consumer_topic.ladder_hash. --------------

-- Its hash, one row: a daemon whose configuration has another ladder does not consume.
CREATE TABLE status_ladder (
    hash text COLLATE "C" NOT NULL
);

-- Statuses (flag_bit NULL) and flags (code = 9001 + flag_bit, no parent). A code is a priority.
CREATE TABLE message_status_priority (
    code smallint PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    parent smallint,
    priority smallint NOT NULL,
    terminal boolean NOT NULL DEFAULT false,
    flag_bit smallint UNIQUE,
    implies smallint,
    CHECK (flag_bit IS NULL OR code = 9001 + flag_bit),
    CHECK (flag_bit IS NOT NULL OR code BETWEEN 0 AND 9000)
);

-- Every status with all statuses on its path from the root, itself and the root included.
CREATE TABLE status_path (
    code smallint,
    ancestor smallint,
    PRIMARY KEY (code, ancestor)
);

-- What a transition old -> new does to the counters: path(new) - path(old). Telescopes over any sequence of transitions.
CREATE TABLE path_delta (
    old smallint,
    new smallint,
    code smallint,
    delta smallint NOT NULL,
    PRIMARY KEY (old, new, code)
);

-- A name that means another status on a channel. For readers: the decoder has its own copy from the configuration.
CREATE TABLE status_override (
    channel text COLLATE "C",
    status text COLLATE "C",
    becomes text COLLATE "C" NOT NULL,
    PRIMARY KEY (channel, status)
);

-- Counters. ----------------------------------------------------------------------------------------------------------

-- Append-only: a transaction inserts one row of arrays. Nothing is updated, so no two transactions wait for a counter and
-- no open snapshot slows them down. The roll-up empties it all the time: vacuum by number of rows, not by share.
CREATE TABLE campaign_funnel_delta (
    id bigserial PRIMARY KEY,
    campaign_id text[] COLLATE "C" NOT NULL,
    status smallint[] NOT NULL,
    messages bigint[] NOT NULL,
    events bigint[] NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- Deltas, rolled up. Messages without a campaign count under ''.
CREATE TABLE campaign_funnel_total (
    campaign_id text COLLATE "C",
    status smallint,
    messages bigint NOT NULL,
    events bigint NOT NULL,
    PRIMARY KEY (campaign_id, status)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- Positions. ---------------------------------------------------------------------------------------------------------

-- The only place where these are pinned; a configuration that differs refuses to start.
CREATE TABLE consumer_topic (
    topic text COLLATE "C" PRIMARY KEY,
    cluster_id text COLLATE "C" NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    lanes integer NOT NULL,
    hash_version integer NOT NULL,
    ladder_hash text COLLATE "C" NOT NULL,
    partitions integer NOT NULL DEFAULT 0
);

-- Where each lane of each partition stands. The anchor is the last record delivered below next_offset: it tells one
-- incarnation of a topic from another. Free space on the page keeps every update HOT.
CREATE TABLE consumer_progress (
    topic text COLLATE "C",
    partition integer,
    lane integer,
    next_offset bigint NOT NULL,
    generation bigint NOT NULL,
    anchor_offset bigint,
    anchor_timestamp bigint, -- milliseconds since 1970
    anchor_crc bigint,
    PRIMARY KEY (topic, partition, lane)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- What waits, and what could not be applied. -----------------------------------------------------------------------------

-- Receipts whose message row does not exist yet. Never updated: a poll that rewrote them would cost 277 MB of WAL for
-- 300 000 rows. The payload is the event's own JSON text, for the dead letter that it may become.
CREATE TABLE parked_event (
    topic text COLLATE "C",
    partition integer,
    "offset" bigint,
    index integer,
    lane integer NOT NULL,
    -- Of the default collation, which gives way: compared with the inbox's key, whatever collation that has, the key's own
    -- counts, and its index is used.
    message_id text NOT NULL,
    status smallint NOT NULL, -- status or flag code that the receipt names
    at timestamptz NOT NULL,
    parked_at timestamptz NOT NULL DEFAULT now(),
    payload bytea NOT NULL,
    traceparent text COLLATE "C",
    PRIMARY KEY (topic, partition, "offset", index)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
-- A lane wakes its own rows in the order of their positions.
CREATE INDEX parked_event_lane ON parked_event (lane, topic, partition, "offset", index);
-- "What waits for this message", for operators.
CREATE INDEX parked_event_message ON parked_event (message_id);

CREATE TABLE dead_letter (
    topic text COLLATE "C",
    partition integer,
    "offset" bigint,
    index integer, -- position in the record; -1: the whole record
    lane integer NOT NULL,
    reason text COLLATE "C" NOT NULL,
    detail text COLLATE "C",
    payload bytea,
    traceparent text COLLATE "C",
    dead_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic, partition, "offset", index)
);

-- Views. ---------------------------------------------------------------------------------------------------------------

-- Exact at every moment: totals and deltas in one snapshot. Each count goes to its own status and is taken off what
-- stands in the parent, so one pass gives `current`, and a condition on campaign_id reaches the tables.
CREATE VIEW campaign_funnel AS
SELECT c.campaign_id, c.status, COALESCE(p.name, c.status::text) AS status_name, c.messages, c.events,
       CASE WHEN c.status < 9001 THEN c.standing END AS current
FROM (
    SELECT r.campaign_id, v.status, sum(v.messages)::bigint AS messages, sum(v.events)::bigint AS events,
           sum(v.standing)::bigint AS standing
    FROM (
        SELECT t.campaign_id, t.status, t.messages, t.events FROM campaign_funnel_total t
        UNION ALL
        SELECT a.campaign_id, a.status, a.messages, a.events
        FROM campaign_funnel_delta d,
             unnest(d.campaign_id, d.status, d.messages, d.events) AS a (campaign_id, status, messages, events)
    ) r
    LEFT JOIN message_status_priority k ON k.code = r.status
    CROSS JOIN LATERAL (VALUES (r.status, r.messages, r.events, r.messages),
                               (k.parent, 0, 0, -r.messages)) AS v (status, messages, events, standing)
    WHERE v.status IS NOT NULL
    GROUP BY r.campaign_id, v.status
) c
LEFT JOIN message_status_priority p ON p.code = c.status
WHERE c.messages <> 0 OR c.events <> 0;

-- What the rates are made of: one row for each (KPI, part of the fraction, status), by name, since the ladder can be
-- replaced. A row whose status is not in the ladder drops out; a KPI without numerator or denominator drops out with it.
CREATE VIEW kpi_part AS
WITH final (code) AS (
    -- A receipt that settles a message: DELIVERED, or a terminal status below SENT; only the outermost, as a path counts
    -- all its statuses.
    SELECT k.code
    FROM message_status_priority k
    WHERE (k.terminal OR k.name = 'DELIVERED')
      AND EXISTS (SELECT FROM status_path s JOIN message_status_priority a ON a.code = s.ancestor
                  WHERE s.code = k.code AND s.code <> s.ancestor AND a.name = 'SENT')
      AND NOT EXISTS (SELECT FROM status_path s JOIN message_status_priority a ON a.code = s.ancestor
                      WHERE s.code = k.code AND s.code <> s.ancestor
                        AND (a.terminal OR a.name = 'DELIVERED') AND a.name <> 'SENT')
)
SELECT d.kpi, d.part, k.code AS status, d.measure
FROM (VALUES
    ('sent_per_targeted',          'numerator',   'SENT',               'messages'),
    ('sent_per_targeted',          'denominator', 'TARGETED',           'messages'),
    ('skipped_per_targeted',       'numerator',   'SKIPPED',            'messages'),
    ('skipped_per_targeted',       'denominator', 'TARGETED',           'messages'),
    ('rejected_per_targeted',      'numerator',   'REJECTED',           'messages'),
    ('rejected_per_targeted',      'denominator', 'TARGETED',           'messages'),
    ('delivered_per_sent',         'numerator',   'DELIVERED',          'messages'),
    ('delivered_per_sent',         'denominator', 'SENT',               'messages'),
    ('hard_bounced_per_sent',      'numerator',   'BOUNCED_HARD',       'messages'),
    ('hard_bounced_per_sent',      'numerator',   'BOUNCED_HARD_EMAIL', 'messages'),
    ('hard_bounced_per_sent',      'denominator', 'SENT',               'messages'),
    ('soft_bounced_per_sent',      'numerator',   'BOUNCED_SOFT',       'messages'),
    ('soft_bounced_per_sent',      'denominator', 'SENT',               'messages'),
    ('blocked_per_sent',           'numerator',   'BLOCKED',            'messages'),
    ('blocked_per_sent',           'denominator', 'SENT',               'messages'),
    ('failed_per_sent',            'numerator',   'FAILED',             'messages'),
    ('failed_per_sent',            'denominator', 'SENT',               'messages'),
    ('expired_per_sent',           'numerator',   'EXPIRED',            'messages'),
    ('expired_per_sent',           'denominator', 'SENT',               'messages'),
    ('pending_per_sent',           'numerator',   'SENT',               'current'),
    ('pending_per_sent',           'numerator',   'DEFERRED',           'current'),
    ('pending_per_sent',           'denominator', 'SENT',               'messages'),
    ('receipts_per_sent',          'denominator', 'SENT',               'messages'),
    ('opened_per_delivered',       'numerator',   'OPENED',             'messages'),
    ('opened_per_delivered',       'denominator', 'DELIVERED',          'messages'),
    ('clicked_per_delivered',      'numerator',   'CLICKED',            'messages'),
    ('clicked_per_delivered',      'denominator', 'DELIVERED',          'messages'),
    ('clicked_per_opened',         'numerator',   'CLICKED',            'messages'),
    ('clicked_per_opened',         'denominator', 'OPENED',             'messages'),
    ('complained_per_delivered',   'numerator',   'COMPLAINED',         'messages'),
    ('complained_per_delivered',   'denominator', 'DELIVERED',          'messages'),
    ('unsubscribed_per_delivered', 'numerator',   'UNSUBSCRIBED',       'messages'),
    ('unsubscribed_per_delivered', 'denominator', 'DELIVERED',          'messages'),
    ('replied_per_delivered',      'numerator',   'REPLIED',            'messages'),
    ('replied_per_delivered',      'denominator', 'DELIVERED',          'messages'),
    ('total_opens_per_delivered',  'numerator',   'OPENED',             'events'),
    ('total_opens_per_delivered',  'denominator', 'DELIVERED',          'messages'),
    ('total_clicks_per_delivered', 'numerator',   'CLICKED',            'events'),
    ('total_clicks_per_delivered', 'denominator', 'DELIVERED',          'messages')
) AS d (kpi, part, name, measure)
JOIN message_status_priority k ON k.name = d.name
UNION ALL
SELECT 'receipts_per_sent', 'numerator', f.code, 'messages' FROM final f;

-- value is NULL where the denominator is 0.
CREATE VIEW campaign_kpi AS
SELECT f.campaign_id, f.kpi, f.numerator::double precision / NULLIF(f.denominator, 0) AS value, f.numerator,
       f.denominator
FROM (
    SELECT c.campaign_id, d.kpi,
           COALESCE(sum(m.n) FILTER (WHERE k.part = 'numerator'), 0)::bigint AS numerator,
           COALESCE(sum(m.n) FILTER (WHERE k.part = 'denominator'), 0)::bigint AS denominator
    FROM campaign_funnel c
    CROSS JOIN (SELECT kpi FROM kpi_part WHERE part = 'numerator'
                INTERSECT SELECT kpi FROM kpi_part WHERE part = 'denominator') d
    LEFT JOIN kpi_part k ON k.kpi = d.kpi AND k.status = c.status
    CROSS JOIN LATERAL (SELECT CASE k.measure WHEN 'messages' THEN c.messages WHEN 'events' THEN c.events
                                              WHEN 'current' THEN c.current END AS n) m
    GROUP BY c.campaign_id, d.kpi
) f;

-- Functions. -----------------------------------------------------------------------------------------------------------

-- Moves the positions of a batch, or raises RD001 if one of them is not where the batch was made for. One row after the
-- other in the order of the arrays (the client sorts by topic and partition): the order in which the rows are locked. The
-- raise is needed because the batch's other statements are already on their way.
CREATE FUNCTION fence(topics text[], partitions int4[], my_lane int4, expected int8[], next int8[], generations int8[],
                      anchor_offsets int8[], anchor_timestamps int8[], anchor_crcs int8[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found_offset int8;
    found_generation int8;
BEGIN
    FOR i IN 1 .. cardinality(topics) LOOP
        UPDATE consumer_progress p
        SET next_offset = next[i],
            anchor_offset = CASE WHEN anchor_offsets[i] = -1 THEN p.anchor_offset ELSE anchor_offsets[i] END,
            anchor_timestamp = CASE WHEN anchor_offsets[i] = -1 THEN p.anchor_timestamp ELSE anchor_timestamps[i] END,
            anchor_crc = CASE WHEN anchor_offsets[i] = -1 THEN p.anchor_crc ELSE anchor_crcs[i] END
        WHERE p.topic = topics[i] AND p.partition = partitions[i] AND p.lane = my_lane
          AND p.next_offset = expected[i] AND p.generation = generations[i];
        IF NOT FOUND THEN
            SELECT p.next_offset, p.generation INTO found_offset, found_generation
            FROM consumer_progress p
            WHERE p.topic = topics[i] AND p.partition = partitions[i] AND p.lane = my_lane;
            RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = format(
                'position of topic %s partition %s lane %s: expected %s of generation %s, found %s of generation %s',
                topics[i], partitions[i], my_lane, expected[i], generations[i],
                COALESCE(found_offset::text, 'no row'), COALESCE(found_generation::text, 'none'));
        END IF;
    END LOOP;
END
$$;

-- Ends a probe: everything that its transaction did is rolled back on purpose.
CREATE FUNCTION probe_abort() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'RD002', MESSAGE = 'probe went through and is rolled back as intended';
END
$$;

-- Replaces the ladder. Arrays of equal length for statuses and flags; likewise the three for overrides.
CREATE FUNCTION ladder_fill(codes int2[], names text[], parents int2[], terminals bool[], flag_bits int2[],
                            implied int2[], channels text[], overridden text[], becoming text[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM message_status_priority;
    INSERT INTO message_status_priority (code, name, parent, priority, terminal, flag_bit, implies)
    SELECT l.code, l.name, l.parent, l.code, l.terminal, l.flag_bit, l.implies
    FROM unnest(codes, names, parents, terminals, flag_bits, implied)
         AS l (code, name, parent, terminal, flag_bit, implies);

    DELETE FROM status_path;
    INSERT INTO status_path (code, ancestor)
    WITH RECURSIVE path (code, ancestor) AS (
        SELECT k.code, k.code FROM message_status_priority k WHERE k.flag_bit IS NULL
        UNION ALL
        SELECT path.code, k.parent
        FROM path JOIN message_status_priority k ON k.code = path.ancestor
        WHERE k.parent IS NOT NULL
    )
    SELECT path.code, path.ancestor FROM path;

    DELETE FROM path_delta;
    INSERT INTO path_delta (old, new, code, delta)
    SELECT s.old, s.new, s.code, sum(s.delta)
    FROM (SELECT o.code AS old, p.code AS new, p.ancestor AS code, 1 AS delta
          FROM status_path p, message_status_priority o WHERE o.flag_bit IS NULL
          UNION ALL
          SELECT p.code, n.code, p.ancestor, -1
          FROM status_path p, message_status_priority n WHERE n.flag_bit IS NULL) s
    GROUP BY s.old, s.new, s.code
    HAVING sum(s.delta) <> 0;

    DELETE FROM status_override;
    INSERT INTO status_override (channel, status, becomes)
    SELECT o.channel, o.status, o.becomes FROM unnest(channels, overridden, becoming) AS o (channel, status, becomes);
END
$$;

INSERT INTO schema_version (version) VALUES (1);
