-- Persons that were erased. No variables; search_path = the schema.

-- Each run of `receiptd erase`: that it was done, by whom, and how many rows went. Never an id.
CREATE TABLE erasure (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    begun_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz, -- NULL: it was interrupted, or is under way
    erased_by text NOT NULL DEFAULT session_user,
    subject text COLLATE "C" NOT NULL CHECK (subject IN ('customer', 'messages')),
    reference text COLLATE "C", -- of the operator's
    subject_salt bytea, -- without a reference: SHA-256 of the salt and the customer's id, or of the message ids
    subject_hash bytea,
    messages bigint NOT NULL DEFAULT 0,
    parked bigint NOT NULL DEFAULT 0,
    letters bigint NOT NULL DEFAULT 0,
    timeline bigint NOT NULL DEFAULT 0,
    aliases bigint NOT NULL DEFAULT 0,
    runs bigint NOT NULL DEFAULT 0,
    folds bigint NOT NULL DEFAULT 0
);
