-- Part of erase_messages(): takes these messages out of the rows that wait for the stream. A row that is left without
-- messages publishes nothing. The inbox's trigger has written the tombstones of `deleted`. The other messages were
-- deleted earlier and get another tombstone, since the stream may have been switched on or filled after that. Lists of
-- ids are hashed (IN): a backfill leaves 50 rows of 1 000 messages, and this step holds locks.
CREATE OR REPLACE FUNCTION erase_stream(erased text[], deleted text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE stream_event e
    SET ids = erase_elements(e.ids, e.ids, erased), orgs = erase_elements(e.orgs, e.ids, erased),
        campaigns = erase_elements(e.campaigns, e.ids, erased), old = erase_elements(e.old, e.ids, erased),
        new = erase_elements(e.new, e.ids, erased), flags = erase_elements(e.flags, e.ids, erased),
        gained = erase_elements(e.gained, e.ids, erased), times = erase_elements(e.times, e.ids, erased),
        gateways = erase_elements(e.gateways, e.ids, erased), reasons = erase_elements(e.reasons, e.ids, erased),
        columns = erase_elements(e.columns, e.ids, erased), traces = erase_elements(e.traces, e.ids, erased)
    WHERE e.kind <> 'gone'
      AND EXISTS (SELECT FROM unnest(e.ids) AS i (id) WHERE i.id IN (SELECT unnest(erased)));
    INSERT INTO stream_event (ids, kind)
    SELECT w.ids, 'gone'
    FROM (SELECT array_agg(i.id) AS ids FROM unnest(erased) i (id) WHERE i.id <> ALL (COALESCE(deleted, '{}'))) w
    WHERE w.ids IS NOT NULL AND current_setting('receiptd.stream', true) = 'on';
END
$$;
