-- Part of erase_messages(): deletes the dead letters whose payload or detail names one of these ids: message ids, and gateways' ids together
-- with the name of their account. A longer id that contains a shorter one is another id. Reads all letters. Returns how many went.
CREATE OR REPLACE FUNCTION erase_letters(ids text[], accounts text[], gateway_ids text[]) RETURNS int8 LANGUAGE sql AS $$
    WITH named AS MATERIALIZED (
        SELECT n.account, v.form,
               '(?<![[:alnum:]_.|-])' || regexp_replace(encode(convert_to(v.form, 'UTF8'), 'escape'), '[^[:alnum:]]', '\\\&', 'g')
               || '(?![[:alnum:]_.|-])' AS pattern
        FROM (SELECT NULL AS account, i.id FROM unnest(ids) i (id)
              UNION ALL SELECT g.account, g.id FROM unnest(accounts, gateway_ids) g (account, id)) n,
             -- As it is, and as JSON writes it.
             LATERAL (SELECT n.id UNION SELECT substr(to_json(n.id)::text, 2, length(to_json(n.id)::text) - 2)) v (form)
    ),
    gone AS (
        DELETE FROM dead_letter d
        WHERE EXISTS (SELECT FROM named n
                      WHERE position(convert_to(n.form, 'UTF8') IN d.payload) > 0
                        AND (n.account IS NULL OR position(convert_to(n.account, 'UTF8') IN d.payload) > 0)
                        AND encode(d.payload, 'escape') ~ n.pattern)
        RETURNING 1
    )
    SELECT count(*) FROM gone
$$;
