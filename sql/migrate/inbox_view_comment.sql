-- Writes down what the view stands for, so that the next migration sees whether the mapping has changed. Variables:
-- mapping.
COMMENT ON VIEW message_inbox IS :'mapping';
