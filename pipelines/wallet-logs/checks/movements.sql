-- Per account the sum of its movements is the way from its first balance to its last. A log in quarantine is a movement
-- that is missing: in the account that it names, or, if it names a wrong one, where its own balance begins.
SELECT t.account_id, t.moved, t.last - t.first AS changed
FROM (
    SELECT
        account_id,
        sum(CASE WHEN type = 'credit' THEN amount ELSE -amount END) AS moved,
        (array_agg(balance_before ORDER BY created_at, source_id))[1] AS first,
        (array_agg(balance_after ORDER BY created_at DESC, source_id DESC))[1] AS last
    FROM bank.transactions
    WHERE reference LIKE 'WL-%'
    GROUP BY account_id
) t
JOIN bank.accounts a ON a.id = t.account_id
WHERE t.moved <> t.last - t.first
    AND NOT EXISTS (SELECT 1 FROM quarantined q WHERE q.raw LIKE '%' || a.wallet_id || '%')
    -- OFFSET 0 keeps this to the few accounts that come here, instead of comparing every movement with every log first.
    AND NOT EXISTS (
        SELECT 1
        FROM bank.transactions g
        JOIN quarantined q ON q.raw LIKE '%"balance_before":"' || g.balance_after || '"%'
        WHERE g.account_id = t.account_id
        OFFSET 0
    )
