-- For a batch of receipts that was sent without subscribers/actions.sql, because the instance knows of no pipeline that
-- subscribes to one of its transitions: raises RD003 if that is wrong, seen with the batch's own snapshot. tops: the
-- highest statuses that its messages may reach; mask: all flags that they may gain. Returns true.
CREATE OR REPLACE FUNCTION actions_unsubscribed(tops int2[], mask int4) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM pipeline_trigger t WHERE t.code >= 9001 AND (mask >> (t.code - 9001)) & 1 = 1)
       OR EXISTS (SELECT FROM status_path p JOIN pipeline_trigger t ON t.code = p.ancestor WHERE p.code = ANY (tops)) THEN
        RAISE EXCEPTION USING ERRCODE = 'RD003', MESSAGE = 'pipelines have changed: one subscribes to this batch';
    END IF;
    RETURN true;
END
$$;
