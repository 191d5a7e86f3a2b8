-- The ladder, as the configuration has it; filled by ladder_fill(), pinned by consumer_topic.ladder_hash. No variables;
-- search_path = the schema. The texts of all tables are COLLATE "C": one total order for receiptd (memcmp) and for
-- PostgreSQL, whatever the database's locale is.

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

-- The counts of a transition old -> new: path(new) - path(old). They telescope over any sequence of transitions.
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
