-- The ladder in the order of codes: code, name, parent (NULL: a root or flag), is_flag. Flags come last.
SELECT k.code, k.name, k.parent, k.flag_bit IS NOT NULL AS is_flag FROM message_status_priority k ORDER BY k.code;
