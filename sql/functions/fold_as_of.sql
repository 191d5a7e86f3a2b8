-- Whether a group was quiet is asked as of this time. Where nobody gathers, groups are published late, without what has not
-- been gathered; it is told next time.
CREATE OR REPLACE FUNCTION fold_as_of() RETURNS timestamptz LANGUAGE sql STABLE
RETURN (SELECT GREATEST(l.gathered_at, now() - interval '10 seconds') FROM fold_lane l WHERE l.lane = 0);
