-- Messages that count as one (counters.groups): of one customer, or attempts at one logical message.
-- No variables; search_path = the schema.

-- By which the ids of customers are hashed (group_key()): the tables below hold no id.
CREATE TABLE group_salt (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    salt bytea NOT NULL DEFAULT uuid_send(gen_random_uuid())
);
INSERT INTO group_salt DEFAULT VALUES;

-- Append-only, one row of arrays for each kind and transaction: what changed in a message of a group. Emptied by
-- groups_fold().
CREATE TABLE group_delta (
    id bigserial PRIMARY KEY,
    kind text COLLATE "C" NOT NULL, -- customer, logical
    campaign_id text[] COLLATE "C" NOT NULL,
    key bytea[] NOT NULL,
    old smallint[] NOT NULL, -- the message's status before; NULL: it is new
    new smallint[] NOT NULL,
    gained integer[] NOT NULL -- flags
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- A group: in which statuses its messages stand, how many in each, and what follows from that (groups_merged()).
-- Written by groups_fold() alone, or under its lock.
CREATE TABLE message_group (
    campaign_id text COLLATE "C",
    kind text COLLATE "C",
    key bytea,
    status smallint, -- that of the group; NULL: it counts nowhere
    flags integer NOT NULL,
    codes smallint[] NOT NULL,
    counts integer[] NOT NULL,
    PRIMARY KEY (campaign_id, kind, key)
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
