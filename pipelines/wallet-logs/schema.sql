-- The bank's schema: where migrated wallet logs arrive.
--
-- Customers and accounts are the bank's own and are there before a migration begins; the keys of both are the
-- bank's, and wallet_id and external_id are how the source names them. The foreign keys of transactions are in
-- foreign_keys.sql: whoever loads millions of rows adds them afterwards.

CREATE SCHEMA IF NOT EXISTS bank;

CREATE TABLE bank.customers (
    id bigint PRIMARY KEY,
    external_id uuid NOT NULL UNIQUE,
    name text NOT NULL
);

CREATE TABLE bank.accounts (
    id bigint PRIMARY KEY,
    wallet_id uuid NOT NULL UNIQUE,
    customer_id bigint NOT NULL REFERENCES bank.customers (id),
    currency text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'frozen', 'closed'))
);

CREATE TABLE bank.transactions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Made of the source's id alone, so that the same record always meets the same row.
    reference text NOT NULL UNIQUE,
    source_id uuid NOT NULL,
    account_id bigint NOT NULL,
    customer_id bigint NOT NULL,
    type text NOT NULL CHECK (type IN ('credit', 'debit')),
    amount numeric(20, 4) NOT NULL CHECK (amount >= 0),
    balance_before numeric(20, 4) NOT NULL,
    balance_after numeric(20, 4) NOT NULL,
    currency text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    status text NOT NULL CHECK (status IN ('completed', 'pending', 'reversed')),
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    migrated_at timestamptz NOT NULL DEFAULT now()
);

-- Statements and balances are asked by account, everything a person has by customer.
CREATE INDEX transactions_account_id ON bank.transactions (account_id);
CREATE INDEX transactions_customer_id ON bank.transactions (customer_id);
