-- version of the schema. Fails with 42P01 where receiptd migrate has never run.
SELECT COALESCE(max(version), 0) AS version FROM schema_version;
