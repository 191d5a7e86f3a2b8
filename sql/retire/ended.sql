-- `receiptd maintain` has walked all tables, to expire and to retire.
INSERT INTO maintained (task) VALUES ('walk') ON CONFLICT (task) DO UPDATE SET ended_at = EXCLUDED.ended_at
