-- From rows of bank.transactions back to what the core-service sent.
SELECT
    t.reference AS _reference,
    t.source_id AS id,
    a.wallet_id,
    t.type,
    t.amount,
    t.balance_before,
    t.balance_after,
    t.currency,
    t.status,
    t.metadata ->> 'narration' AS memo,
    t.metadata - 'narration' AS metadata,
    t.created_at
FROM target t
JOIN bank.accounts a ON a.id = t.account_id
