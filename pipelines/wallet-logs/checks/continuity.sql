-- Per account every movement begins where the one before it ended. A log in quarantine leaves a gap: in the account that
-- it names, or, if it names a wrong one, where its own balance begins.
SELECT t.account_id, t.reference, t.balance_before, t.ended_with
FROM (
    SELECT
        account_id, reference, balance_before,
        lag(balance_after) OVER (PARTITION BY account_id ORDER BY created_at, source_id) AS ended_with
    FROM bank.transactions
    WHERE reference LIKE 'WL-%'
) t
JOIN bank.accounts a ON a.id = t.account_id
WHERE t.balance_before <> t.ended_with
    AND NOT EXISTS (
        SELECT 1 FROM quarantined q
        WHERE q.raw LIKE '%' || a.wallet_id || '%' OR q.raw LIKE '%"balance_before":"' || t.ended_with || '"%'
    )
