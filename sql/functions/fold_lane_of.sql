-- The shard of a group: one publisher owns it.
CREATE OR REPLACE FUNCTION fold_lane_of(rule text, key text) RETURNS smallint LANGUAGE sql IMMUTABLE
RETURN (hashtextextended(rule || E'\n' || key, 0) & 1)::smallint;
