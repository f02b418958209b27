//! What the target bank knows before a migration: customers and accounts, as COPY text.

use std::io::{self, Write};

use super::Logs;

impl Logs {
    /// Writes the rows of `customers (id, external_id, name)` as the text that Postgres' COPY reads.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_customers(&self, out: &mut impl Write) -> io::Result<()> {
        for customer in 0..self.customers() {
            let id = customer + 1;
            writeln!(out, "{id}\t{}\tCustomer {id}", self.generator().customer_id(customer))?;
        }
        Ok(())
    }

    /// Writes the rows of `accounts (id, wallet_id, customer_id, currency, status)` as the text that Postgres' COPY
    /// reads.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_accounts(&self, out: &mut impl Write) -> io::Result<()> {
        for wallet in 0..self.wallets() {
            writeln!(
                out,
                "{}\t{}\t{}\t{}\tactive",
                wallet + 1,
                self.generator().wallet_id(wallet),
                self.generator().customer_of(wallet) + 1,
                self.generator().currency(wallet)
            )?;
        }
        Ok(())
    }

    /// Writes both as a script for `psql`, in an order that foreign keys agree with.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_accounts_script(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "COPY bank.customers (id, external_id, name) FROM stdin;")?;
        self.write_customers(out)?;
        writeln!(out, "\\.\nCOPY bank.accounts (id, wallet_id, customer_id, currency, status) FROM stdin;")?;
        self.write_accounts(out)?;
        writeln!(out, "\\.")
    }
}
