      AND m.:"recent_column" >= ALL (:'recent_since')
