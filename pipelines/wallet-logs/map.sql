-- One row of bank.transactions for each wallet log.
SELECT
    s._record,
    s._reference AS reference,
    s.id AS source_id,
    a.id AS account_id,
    a.customer_id,
    s.type,
    s.amount,
    s.balance_before,
    s.balance_after,
    s.currency,
    s.status,
    s.metadata || jsonb_strip_nulls(jsonb_build_object('narration', s.memo)) AS metadata,
    s.created_at,
    CASE
        WHEN s.type NOT IN ('credit', 'debit') THEN 'unknown_type: ' || s.type
        WHEN a.id IS NULL THEN 'unknown_wallet: ' || s.wallet_id
        WHEN a.currency <> s.currency THEN 'currency_mismatch: the account has ' || a.currency || ', the log ' || s.currency
    END AS _reject
FROM staged s
LEFT JOIN bank.accounts a ON a.wallet_id = s.wallet_id
