-- `receiptd retire` has walked all of its tables.
INSERT INTO maintained (task) VALUES ('retire') ON CONFLICT (task) DO UPDATE SET ended_at = EXCLUDED.ended_at
