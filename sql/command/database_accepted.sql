-- Servers that this database may follow: system_identifier, timeline.
SELECT a.system_identifier, a.timeline FROM database_accepted a;
