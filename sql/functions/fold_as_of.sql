-- The time as of which a group counts as idle. Where no publisher gathers, groups are published late, without the
-- events that are not gathered; these come with the next publication.
CREATE OR REPLACE FUNCTION fold_as_of() RETURNS timestamptz LANGUAGE sql STABLE
RETURN (SELECT GREATEST(l.gathered_at, now() - interval '10 seconds') FROM fold_lane l WHERE l.lane = 0);
