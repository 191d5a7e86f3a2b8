-- Version 4: folds, one publication for each burst of events of a group. What lanes append, what is open, what was claimed.

-- The rules as the instance that read its configuration last has them; sql/fold/rules.sql writes it. A removed rule stays
-- until its last group was published.
CREATE TABLE fold_rule (
    rule text COLLATE "C" PRIMARY KEY,
    source text NOT NULL, -- transitions, topic
    topic text COLLATE "C", -- that a rule of source topic reads
    match jsonb NOT NULL, -- field -> array of texts, one of which it must be
    by_campaign boolean NOT NULL,
    by_org boolean NOT NULL,
    by_status boolean NOT NULL,
    kinds jsonb NOT NULL, -- of what is collected: name -> kind
    fields jsonb NOT NULL, -- name -> field
    "window" interval NOT NULL,
    max_hold interval NOT NULL,
    max_events bigint NOT NULL,
    max_values integer NOT NULL,
    funnel boolean NOT NULL,
    target text NOT NULL, -- kafka, webhook
    destination text NOT NULL, -- topic or URL
    message_key text NOT NULL, -- of the published record: group, id, or a field of the group key
    removed_at timestamptz
);

-- Appended by lanes and by the reader of topics, one row for each transaction, taken away by the publisher. Of transitions:
-- orgs to gained; of topics: rules, keys, parts.
CREATE TABLE fold_event (
    id bigserial PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    orgs text[], campaigns text[], old smallint[], new smallint[], gained integer[],
    rules text[], keys text[], parts text[], -- JSON, read when it is gathered
    n bigint[] NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- Short-lived: to compress them costs more than it saves.
ALTER TABLE fold_event ALTER COLUMN parts SET STORAGE EXTERNAL, ALTER COLUMN keys SET STORAGE EXTERNAL,
    ALTER COLUMN rules SET STORAGE EXTERNAL;

-- A group, open while events > 0. due_at is never later than the moment at which the group has to be looked at again; events
-- that come leave it alone, so that their update stays on the page. Closed groups keep their number until they are
-- forgotten.
CREATE TABLE fold_group (
    rule text COLLATE "C",
    key text COLLATE "C", -- the JSON object of the group's fields
    lane smallint NOT NULL,
    number bigint NOT NULL, -- of the publication that the group is open for
    events bigint NOT NULL,
    first_at timestamptz,
    last_at timestamptz,
    due_at timestamptz, -- NULL: closed
    collected jsonb NOT NULL,
    opened_at timestamptz, -- by the database's clock, as all times here
    published_at timestamptz,
    PRIMARY KEY (rule, key)
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX fold_group_due ON fold_group (lane, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX fold_group_closed ON fold_group (lane, published_at) WHERE due_at IS NULL;

-- What was claimed and is not known to be published. seq is dense in each lane and stands, as an offset, in Kafka's own
-- transaction (docs/folds.md): it tells what is published and what is not.
CREATE TABLE fold_outbox (
    lane smallint,
    seq bigint,
    rule text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    destination text NOT NULL,
    message_key text,
    payload text NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (lane, seq)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- What was claimed for a webhook, until it has answered with 2xx. Claimed for an attempt by moving retry_at on: whoever dies
-- in the middle of one leaves it to the next. failed_at: given up, kept for a person to see.
CREATE TABLE fold_call (
    id text COLLATE "C" PRIMARY KEY,
    lane smallint NOT NULL,
    rule text COLLATE "C" NOT NULL,
    payload text NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    wait_ms bigint NOT NULL DEFAULT 0, -- the last one
    retry_at timestamptz NOT NULL DEFAULT now(),
    failed_at timestamptz,
    error text
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX fold_call_due ON fold_call (lane, retry_at) WHERE failed_at IS NULL;

-- A lane of the publisher. The epoch belongs to its present owner; numbers of groups begin above the largest forgotten one.
CREATE TABLE fold_lane (
    lane smallint PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 0,
    next_seq bigint NOT NULL DEFAULT 1,
    number_floor bigint NOT NULL DEFAULT 0,
    lost_claims bigint NOT NULL DEFAULT 0, -- published, but the database went back behind the claim
    ticks bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO fold_lane (lane) VALUES (0), (1);

-- Exact counts; a row is written by its lane alone.
CREATE TABLE fold_total (
    rule text COLLATE "C",
    lane smallint,
    events bigint NOT NULL DEFAULT 0,
    groups bigint NOT NULL DEFAULT 0, -- opened
    quiet bigint NOT NULL DEFAULT 0,
    hold bigint NOT NULL DEFAULT 0,
    "full" bigint NOT NULL DEFAULT 0,
    removed bigint NOT NULL DEFAULT 0,
    avoidable bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (rule, lane)
) WITH (fillfactor = 50);

-- Where the reader of topics stands, moved in the transaction that appends what it read.
CREATE TABLE fold_progress (
    topic text COLLATE "C",
    partition integer,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
) WITH (fillfactor = 50);

CREATE FUNCTION fold_lane_of(rule text, key text) RETURNS smallint LANGUAGE sql IMMUTABLE
RETURN (hashtextextended(rule || E'\n' || key, 0) & 1)::smallint;

CREATE FUNCTION fold_id(rule text, key text, number bigint) RETURNS text LANGUAGE sql IMMUTABLE
RETURN md5(rule || E'\n' || key) || '-' || number;

CREATE FUNCTION fold_time(at timestamptz) RETURNS text LANGUAGE sql STABLE
RETURN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

-- The first statement of a publisher's transaction: it owns the lane, or raises RD001.
CREATE FUNCTION fold_fence(my_lane int4, my_epoch int8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE fold_lane l SET ticks = l.ticks + 1 WHERE l.lane = my_lane AND l.epoch = my_epoch;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = format('lane %s of folds has another owner than epoch %s',
                                                                  my_lane, my_epoch);
    END IF;
END
$$;

-- Positions of the reader of topics: as fence() does for lanes.
CREATE FUNCTION fold_topic_fence(topics text[], partitions int4[], expected int8[], next int8[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. cardinality(topics) LOOP
        UPDATE fold_progress p
        SET next_offset = next[i]
        WHERE p.topic = topics[i] AND p.partition = partitions[i] AND p.next_offset = expected[i];
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = format(
                'position of folds in topic %s partition %s: expected %s, found another', topics[i], partitions[i],
                expected[i]);
        END IF;
    END LOOP;
END
$$;

-- What is collected, as {"v": {name: value}, "o": {name: values that a full set had no room for}}: b is later than a.
CREATE FUNCTION fold_merge(a jsonb, kinds jsonb, most int4, b jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v jsonb := COALESCE(a -> 'v', '{}');
    o jsonb := COALESCE(a -> 'o', '{}');
    name text;
    kind text;
    mine jsonb;
    theirs jsonb;
    item jsonb;
    part text;
BEGIN
    FOR name, kind IN SELECT * FROM jsonb_each_text(kinds) LOOP
        mine := v -> name;
        theirs := b -> 'v' -> name;
        IF theirs IS NULL THEN
            CONTINUE;
        ELSIF kind IN ('set', 'links') THEN
            mine := COALESCE(mine, '[]');
            FOR item IN SELECT * FROM jsonb_array_elements(theirs) LOOP
                IF mine @> jsonb_build_array(item) THEN
                    CONTINUE;
                ELSIF jsonb_array_length(mine) < (CASE kind WHEN 'links' THEN 8 ELSE most END) THEN
                    mine := mine || jsonb_build_array(item);
                ELSIF kind = 'set' THEN
                    o := jsonb_set(o, ARRAY[name], to_jsonb(COALESCE((o ->> name)::int8, 0) + 1));
                END IF;
            END LOOP;
        ELSIF kind = 'tally' THEN
            mine := COALESCE(mine, '{}');
            FOR part, item IN SELECT * FROM jsonb_each(theirs) LOOP
                mine := jsonb_set(mine, ARRAY[part], to_jsonb(COALESCE((mine ->> part)::numeric, 0) + item::text::numeric));
            END LOOP;
        ELSIF mine IS NULL THEN
            mine := theirs;
        ELSIF kind IN ('sum', 'count') THEN
            mine := to_jsonb(mine::text::numeric + theirs::text::numeric);
        ELSIF kind = 'min' THEN
            mine := LEAST(mine, theirs);
        ELSIF kind = 'max' THEN
            mine := GREATEST(mine, theirs);
        ELSIF kind = 'last' THEN
            mine := theirs;
        END IF;
        v := jsonb_set(v, ARRAY[name], mine);
    END LOOP;
    -- A part may itself have overflown.
    FOR part, item IN SELECT * FROM jsonb_each(COALESCE(b -> 'o', '{}')) LOOP
        o := jsonb_set(o, ARRAY[part], to_jsonb(COALESCE((o ->> part)::int8, 0) + item::text::int8));
    END LOOP;
    RETURN jsonb_build_object('v', v, 'o', o);
END
$$;

INSERT INTO schema_version (version) VALUES (4);
