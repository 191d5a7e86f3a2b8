-- To which transitions pipelines subscribe: statuses that bring a message to one that starts a run or ends an await,
-- and flags.
SELECT p.code FROM pipeline_trigger t JOIN status_path p ON p.ancestor = t.code
UNION
SELECT t.code FROM pipeline_trigger t WHERE t.code >= 9001;
