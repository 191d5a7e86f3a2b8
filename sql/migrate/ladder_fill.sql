-- Replaces the ladder. Run ladder_check first, in the same transaction. Parameters: $1 int2[] codes, $2 text[] names,
-- $3 int2[] parents (NULL: root or flag), $4 bool[] terminal, $5 int2[] flag bits (NULL: status), $6 int2[] implied
-- statuses (NULL: none). Overrides: $7 text[] channels, $8 text[] statuses, $9 text[] what they become.
SELECT ladder_fill($1::int2[], $2::text[], $3::int2[], $4::bool[], $5::int2[], $6::int2[], $7::text[], $8::text[],
                   $9::text[]);
