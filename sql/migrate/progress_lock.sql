-- Waits for the batches that are on their way and holds back the next ones. So ladder_check.sql sees what they write
-- with the old ladder, and nothing comes after it.
LOCK TABLE consumer_progress IN EXCLUSIVE MODE;
