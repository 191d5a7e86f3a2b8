-- Our ids for those of gateways. $1 text[] accounts, $2 text[] gateway ids, side by side. A row for each that is known;
-- part and parts: NULL unless the id is of a part of the message.
SELECT a.channel_account, a.gateway_id, a.message_id, a.part::int4 AS part, a.parts::int4 AS parts
FROM unnest($1::text[], $2::text[]) asked (channel_account, gateway_id)
JOIN message_alias a ON a.channel_account = asked.channel_account AND a.gateway_id = asked.gateway_id;
