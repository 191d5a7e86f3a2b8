-- Moves the positions of a batch, or raises RD001 if one of them is not where the batch was made for. One row after the
-- other in the order of the arrays (the client sorts by topic and partition): the order in which the rows are locked.
-- The raise is needed because the batch's other statements are already on their way.
CREATE OR REPLACE FUNCTION fence(topics text[], partitions int4[], my_lane int4,
                                 expected int8[], next int8[], generations int8[],
                                 anchor_offsets int8[], anchor_timestamps int8[], anchor_crcs int8[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found_offset int8;
    found_generation int8;
BEGIN
    FOR i IN 1 .. cardinality(topics) LOOP
        UPDATE consumer_progress p
        SET next_offset = next[i],
            anchor_offset = CASE WHEN anchor_offsets[i] = -1 THEN p.anchor_offset ELSE anchor_offsets[i] END,
            anchor_timestamp = CASE WHEN anchor_offsets[i] = -1 THEN p.anchor_timestamp ELSE anchor_timestamps[i] END,
            anchor_crc = CASE WHEN anchor_offsets[i] = -1 THEN p.anchor_crc ELSE anchor_crcs[i] END
        WHERE p.topic = topics[i] AND p.partition = partitions[i] AND p.lane = my_lane
          AND p.next_offset = expected[i] AND p.generation = generations[i];
        IF NOT FOUND THEN
            SELECT p.next_offset, p.generation INTO found_offset, found_generation
            FROM consumer_progress p
            WHERE p.topic = topics[i] AND p.partition = partitions[i] AND p.lane = my_lane;
            RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = format(
                'position of topic %s partition %s lane %s: expected %s of generation %s, found %s of generation %s',
                topics[i], partitions[i], my_lane, expected[i], generations[i],
                COALESCE(found_offset::text, 'no row'), COALESCE(found_generation::text, 'none'));
        END IF;
    END LOOP;
END
$$;
