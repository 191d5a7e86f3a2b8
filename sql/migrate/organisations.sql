-- Notes which organisations have messages in a campaign, for rows that were there before the trigger: one pass over the
-- inbox. Can be run again. A mapped inbox is read only after inbox_callers.sql.
INSERT INTO campaign_organisation (campaign_id, org_id)
SELECT n.campaign_id, n.org_id
FROM (SELECT DISTINCT COALESCE(m.campaign_id, '') AS campaign_id, COALESCE(m.org_id, '') AS org_id
      FROM message_inbox m) n
WHERE NOT EXISTS (SELECT FROM campaign_organisation o WHERE o.campaign_id = n.campaign_id AND o.org_id = n.org_id);
