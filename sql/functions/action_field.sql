-- The value of a field of the inbox, by its name: row is the whole row as JSON, NULL where only the three are asked
-- for. NULL: it has none. A plain expression, so that it becomes part of the query that calls it.
CREATE OR REPLACE FUNCTION action_field(name text, org text, campaign text, message text, inbox_row jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE name WHEN 'org_id' THEN org WHEN 'campaign_id' THEN campaign WHEN 'message_id' THEN message
                     ELSE inbox_row ->> name END
$$;
