//! Reading a vendor's token: from the environment, from standard input or at a prompt, never from an argument.

use std::io::{BufRead, IsTerminal};

use anyhow::Context;
use imports::Token;

use crate::exit::usage;

/// The variable that may hold the token.
pub(crate) const VARIABLE: &str = "CROSSDOCK_SOURCE_TOKEN";
/// A token longer than this is something else that was piped in by mistake.
const LENGTH_MAX: u64 = 8 * 1024;

/// The token, asking for it if need be.
pub(crate) fn read(vendor: &str) -> anyhow::Result<Token> {
    match given()? {
        Some(token) => Ok(token),
        None if std::io::stdin().is_terminal() => {
            let text = rpassword::prompt_password(format!("{vendor} access token (not shown): "))
                .context("cannot read the token from the terminal")?;
            nonempty(Token::new(&text))
        }
        None => Err(usage(format!("no token: set {VARIABLE}, or pipe the token to standard input"))),
    }
}

/// The token, if it is in the environment or comes on a piped standard input.
pub(crate) fn given() -> anyhow::Result<Option<Token>> {
    if let Ok(text) = std::env::var(VARIABLE) {
        return nonempty(Token::new(&text)).map(Some);
    }
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut line = String::new();
    std::io::Read::take(stdin.lock(), LENGTH_MAX)
        .read_line(&mut line)
        .context("cannot read standard input")?;
    let token = Token::new(&line);
    Ok((!token.is_empty()).then_some(token))
}

fn nonempty(token: Token) -> anyhow::Result<Token> {
    if token.is_empty() { Err(usage("the token is empty")) } else { Ok(token) }
}
