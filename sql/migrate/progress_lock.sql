-- Waits for the batches that are on their way and holds back the next ones, so that what they write with the old ladder
-- is seen by ladder_check.sql, and nothing comes after it.
LOCK TABLE consumer_progress IN EXCLUSIVE MODE;
