-- What some pipeline wants to hear of: statuses that bring a message to one of its own, or to one that it awaits, and flags.
SELECT p.code FROM pipeline_trigger t JOIN status_path p ON p.ancestor = t.code
UNION
SELECT t.code FROM pipeline_trigger t WHERE t.code >= 9001;
