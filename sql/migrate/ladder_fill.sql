-- Replaces the ladder. Variables, all array literals: codes (int2), names, parents (int2, NULL: root or flag), terminals
-- (bool), flag_bits (int2, NULL: status), implied (int2, NULL: none), and the overrides: channels, overridden statuses,
-- becoming. Run ladder_check first, in the same transaction.
SELECT ladder_fill(:'codes'::int2[], :'names'::text[], :'parents'::int2[], :'terminals'::bool[], :'flag_bits'::int2[],
                   :'implied'::int2[], :'channels'::text[], :'overridden'::text[], :'becoming'::text[]);
