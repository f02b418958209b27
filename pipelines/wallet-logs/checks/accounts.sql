-- Every row belongs to an account of the bank, in the account's currency and for the account's customer.
SELECT t.reference, t.account_id, t.currency, t.customer_id
FROM bank.transactions t
LEFT JOIN bank.accounts a ON a.id = t.account_id
WHERE a.id IS NULL OR a.currency <> t.currency OR a.customer_id <> t.customer_id
