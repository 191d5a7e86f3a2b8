-- Says why receipts under each of these ids wait: $1 text[] ids, $2 text[] accounts (NULL: none). It costs a look-up
-- by key for each. One row for each id, in order: known (it has a message), alias (the account has an alias of that
-- id), elsewhere, retired (its message was deleted). Column elsewhere: that alias leads to another id, which has no
-- message.
SELECT (SELECT true FROM message_inbox m WHERE m.message_id = w.id LIMIT 1) IS NOT NULL AS known,
       a.target IS NOT NULL AS alias,
       a.target IS NOT NULL
           AND (SELECT true FROM message_inbox m WHERE m.message_id = a.target LIMIT 1) IS NULL AS elsewhere,
       message_is_retired(w.id) AS retired
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (id, account, n)
CROSS JOIN LATERAL (SELECT (SELECT x.message_id COLLATE "default" FROM message_alias x
                            WHERE x.channel_account = w.account AND x.gateway_id = w.id) AS target
                    OFFSET 0) a
ORDER BY w.n;
