-- After definer_counter.sql, where the inbox has the columns of first times (counters.times): what count_deleted()
-- needs to book them. Variable: counter_role. Comments above grants: role.sql.

-- With `counters.times`: the booking of deleted messages says where they counted in the histograms.
GRANT SELECT (first_gateway, first_sent_at, first_delivered_at, first_opened_at) ON message_inbox
    TO :"counter_role";
GRANT SELECT (code, name) ON message_status_priority TO :"counter_role";
GRANT EXECUTE ON FUNCTION time_bucket(timestamptz, timestamptz), time_counts(text, text), time_key(int2),
    time_place(text, timestamptz, timestamptz, timestamptz)
    TO :"counter_role";
