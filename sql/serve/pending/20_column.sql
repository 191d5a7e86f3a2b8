       -- As to_jsonb(m) writes a value, which sql/expiry/candidates.sql compares. Variable: column (of the inbox).
       OR r."column" = :'column' AND to_jsonb(m.:"column") #>> '{}' = r.value
