-- Version 12: one publisher gathers for all lanes and keeps sums in memory. Only added to: instances of the version before go on beside
-- this one.

-- Of lane 0: all events that were there at this time are in groups.
ALTER TABLE fold_lane ADD COLUMN gathered_at timestamptz;

-- Whether a group was quiet is asked as of this time. Where nobody gathers, groups are published late, without what has not
-- been gathered; it is told next time.
CREATE FUNCTION fold_as_of() RETURNS timestamptz LANGUAGE sql STABLE
RETURN (SELECT GREATEST(l.gathered_at, now() - interval '10 seconds') FROM fold_lane l WHERE l.lane = 0);

-- Of transitions: sums that a publisher has kept back, with their own times (microseconds since 1970) in place of the row's.
ALTER TABLE fold_event ADD COLUMN firsts bigint[], ADD COLUMN lasts bigint[];

-- Somebody else has taken rows whose sums are in this publisher's memory: nothing of them may be added.
CREATE FUNCTION fold_check_gone(expected int8, deleted int8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF expected <> deleted THEN
        RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = format('%s of %s rows of events are left', deleted, expected);
    END IF;
END
$$;

INSERT INTO schema_version (version) VALUES (12);
