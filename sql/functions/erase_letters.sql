-- Part of erase_messages(): deletes the dead letters whose payload names one of these ids: message ids, and gateways' ids together with the name
-- of their account. A longer id that contains a shorter one is another id. Reads all letters, each once: its words are joined with the ids.
-- Only an id that is no single word is searched for by itself. Returns how many went.
CREATE OR REPLACE FUNCTION erase_letters(ids text[], accounts text[], gateway_ids text[]) RETURNS int8 LANGUAGE sql AS $$
    WITH named AS MATERIALIZED (
        SELECT n.account, v.form, encode(convert_to(v.form, 'UTF8'), 'escape') AS escaped
        FROM (SELECT NULL AS account, i.id FROM unnest(ids) i (id)
              UNION ALL SELECT g.account, g.id FROM unnest(accounts, gateway_ids) g (account, id)) n,
             -- As it is, and as JSON writes it.
             LATERAL (SELECT n.id UNION SELECT substr(to_json(n.id)::text, 2, length(to_json(n.id)::text) - 2)) v (form)
    ),
    phrases AS MATERIALIZED (
        SELECT n.account, n.form,
               '(?<![[:alnum:]_.|-])' || regexp_replace(n.escaped, '[^[:alnum:]]', '\\\&', 'g') || '(?![[:alnum:]_.|-])' AS pattern
        FROM named n WHERE n.escaped !~ '^[[:alnum:]_.|-]+$'
    ),
    found AS MATERIALIZED (
        SELECT d.topic, d.partition, d."offset", d.index
        FROM dead_letter d
             CROSS JOIN LATERAL regexp_matches(encode(d.payload, 'escape'), '[[:alnum:]_.|-]+', 'g') AS w (word)
             JOIN named n ON n.escaped = w.word[1]
        WHERE n.account IS NULL OR position(convert_to(n.account, 'UTF8') IN d.payload) > 0
        UNION
        SELECT d.topic, d.partition, d."offset", d.index
        FROM dead_letter d JOIN phrases n
             ON position(convert_to(n.form, 'UTF8') IN d.payload) > 0
            AND (n.account IS NULL OR position(convert_to(n.account, 'UTF8') IN d.payload) > 0)
            AND encode(d.payload, 'escape') ~ n.pattern
    ),
    gone AS (
        DELETE FROM dead_letter d USING found f
        WHERE d.topic = f.topic AND d.partition = f.partition AND d."offset" = f."offset" AND d.index = f.index
        RETURNING 1
    )
    SELECT count(*) FROM gone
$$;
