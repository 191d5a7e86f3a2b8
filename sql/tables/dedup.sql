-- Receipts that were counted, by hashes of message and event: a second one is an echo (dedup.window). A partition has
-- those of one day: `receiptd maintain` makes it ahead and drops it when the day is out of the window
-- (dedup_partitions()). No variables; search_path = the schema.
CREATE TABLE receipt_counted (
    day date NOT NULL, -- of the receipt's event time, in UTC
    message bigint NOT NULL,
    event bigint NOT NULL,
    PRIMARY KEY (day, message, event)
) PARTITION BY RANGE (day);
-- Days without a partition of their own: no batch may fail where `maintain` does not run. Its rows are deleted.
CREATE TABLE receipt_counted_other PARTITION OF receipt_counted DEFAULT;
