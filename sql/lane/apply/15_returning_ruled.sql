              -- Only where rules count (rules/*.sql) or something subscribes to transitions (subscribers/*.sql).
              , m.message_id AS id
