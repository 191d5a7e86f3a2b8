-- As apply/45_doubtful.sql: all receipts, since few are woken. The wake adds no key to the row, and reads it as it is
-- now.
, doubtful AS MATERIALIZED (SELECT c.*, counted_keys(c.id, :'counted') AS counted FROM receipts c)
