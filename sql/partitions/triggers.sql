-- The triggers of a partition, for statements that name it, as install_inbox_trigger() and install_retired_trigger()
-- put them on partitions that are there. While the table is no partition they count and book nothing
-- (partition_is_counted()). Variables: part_schema, part.
CREATE TRIGGER receiptd_count_inserted AFTER INSERT ON :"part_schema".:"part" REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION count_inserted('partition');
CREATE TRIGGER receiptd_count_deleted AFTER DELETE ON :"part_schema".:"part" REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION count_deleted('partition');
