-- What `receiptd erase` compares is decoded now. No variables; search_path = the schema.

-- Has other results, and what it called has gone or has another form.
DROP FUNCTION IF EXISTS erase_messages(text[], text, text);
DROP FUNCTION IF EXISTS erase_letters(text[], text[], text[]);
DROP FUNCTION IF EXISTS erase_text(text, text[]);

INSERT INTO schema_version (version) VALUES (7) ON CONFLICT DO NOTHING;
