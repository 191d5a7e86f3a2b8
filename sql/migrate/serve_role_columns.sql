-- After serve_role.sql: columns of the inbox that the configuration names. Variables: serve_role, serve_columns.
SELECT grant_inbox_columns(:'serve_role', :'serve_columns');
