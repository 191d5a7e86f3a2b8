-- Part of actions_claim(): ends awaits whose status was reached before the transition could see that they wait for it.
-- shards: locked ones; now_at: the time of the round.
--
-- The transaction of a transition and the one that sets up an await for it may not see each other. So each await is
-- checked again when every transaction that could have missed it is over. Column settle says when: '0' in a new await;
-- then the number below which all transactions have to be gone; NULL afterwards.
CREATE OR REPLACE FUNCTION actions_settle_awaits(shards int4[], now_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
    UPDATE action a
    SET settle = NULL,
        perform_at = CASE WHEN action_reached(action_path(m.status), m.flags, a.awaits) THEN LEAST(a.perform_at, now_at)
                          ELSE a.perform_at END
    FROM action b LEFT JOIN message_inbox m ON m.message_id = b.message_id
    WHERE b.id = a.id AND a.lane = ANY (shards) AND a.settle > '0'::xid8
      AND a.settle <= pg_snapshot_xmin(pg_current_snapshot());
    UPDATE action a SET settle = pg_snapshot_xmax(pg_current_snapshot())
    WHERE a.lane = ANY (shards) AND a.settle = '0'::xid8;
END
$$;
