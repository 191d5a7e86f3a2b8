-- Adds a person: $1 text organisation, $2 text person, $3 text class, $4 text by whom. Returns rows: 0 if that class
-- suppresses the person already.
SELECT suppressions_import(jsonb_build_array(jsonb_build_object('org_id', $1::text, 'person', $2::text,
                                                                'class', $3::text)), $4::text) AS rows;
