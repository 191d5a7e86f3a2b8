-- Messages that the platform announces on topics. No variables; search_path = the schema.

-- How far these topics have been read.
CREATE TABLE message_progress (
    topic text COLLATE "C",
    partition integer,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
) WITH (fillfactor = 50);

-- An announcement or a tombstone on its way through messages_announce().
CREATE TYPE announcement AS (
    record integer, -- of the batch, from 1
    item integer, -- of the record, from 1; 0: the record is no array
    id text,
    document jsonb, -- NULL: a tombstone
    fields text[], -- columns of the inbox that the document fills; NULL: a tombstone
    fate text, -- NULL: not known yet
    detail text
);
