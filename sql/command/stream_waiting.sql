-- How many rows of the stream wait to be published: rows, counted up to $1 int4.
SELECT count(*) AS rows FROM (SELECT FROM stream_event e LIMIT $1::int4) e;
