-- What ties transactions to accounts and customers; apart from schema.sql, because checking millions of rows at once
-- takes a fraction of the time of checking each as it comes.

ALTER TABLE bank.transactions
    ADD CONSTRAINT transactions_account_id_fkey FOREIGN KEY (account_id) REFERENCES bank.accounts (id);

ALTER TABLE bank.transactions
    ADD CONSTRAINT transactions_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES bank.customers (id);
