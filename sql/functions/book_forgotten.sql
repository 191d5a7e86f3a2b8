-- Books the counts that the messages of a departing partition have in the histograms of times: partitions/book.sql
-- calls it. It books nothing where the partition lacks the columns. campaign_id, status: columns of the partition.
CREATE OR REPLACE FUNCTION book_forgotten(part regclass, campaign_id text, status text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    booking text := inbox_forgotten(part, 'ONLY ' || part, campaign_id, status);
BEGIN
    IF booking <> '' THEN
        EXECUTE booking;
    END IF;
END
$$;
