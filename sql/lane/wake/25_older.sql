      AND (m.:"recent_column" < ALL (:'recent_since') OR m.:"recent_column" IS NULL)
