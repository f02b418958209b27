//! Who calls, and whether they may.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use db::Id;
use http::header::AUTHORIZATION;
use http::request::Parts;
use links::{ApiToken, Caller, Scope};

use super::Shared;
use crate::problem::{Code, Problem};

/// A scope that a handler's signature asks for.
pub(crate) trait Needs: Send + Sync + 'static {
    const SCOPE: Scope;
}

macro_rules! needs {
    ($($name:ident),+) => {
        $(
            /// The scope of that name.
            pub(crate) struct $name;
            impl Needs for $name {
                const SCOPE: Scope = Scope::$name;
            }
        )+
    };
}

needs!(LinksRead, LinksWrite, Domains, Imports, JobsRead);

/// A caller with a valid token that has the scope. Extracted before the body is looked at.
pub(crate) struct Allowed<N> {
    pub(crate) workspace: Id,
    _needs: PhantomData<N>,
}

impl<N: Needs> FromRequestParts<Shared> for Allowed<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Shared) -> Result<Self, Problem> {
        let caller = authenticate(parts, api).await?;
        if !caller.scopes.contains(&N::SCOPE) {
            let scope = N::SCOPE.as_str();
            return Err(Problem::new(Code::MissingScope, format!("the token lacks the scope {scope}"))
                .with("scope", scope));
        }
        Ok(Self { workspace: caller.workspace_id, _needs: PhantomData })
    }
}

async fn authenticate(parts: &Parts, api: &Shared) -> Result<Caller, Problem> {
    let token = bearer(parts)?;
    let now = api.clock.now();
    let mut reader = api.database.read().await?;
    let caller = links::authenticate(reader.conn(), &token, now).await?;
    drop(reader);
    let caller = caller.ok_or_else(|| refused("the token is unknown, revoked or expired"))?;
    if caller.touch {
        // The note may wait for the database's writer; the request does not.
        let (database, id) = (api.database.clone(), caller.token_id);
        tokio::spawn(async move {
            let noted = async {
                let mut tx = database.begin().await?;
                links::touch_token(&mut tx, id, now).await?;
                tx.commit().await.map_err(links::Error::from)
            };
            if let Err(error) = noted.await {
                tracing::warn!(%error, "a token's last use could not be noted");
            }
        });
    }
    Ok(caller)
}

fn bearer(parts: &Parts) -> Result<ApiToken, Problem> {
    let mut lines = parts.headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(refused("send one header Authorization: Bearer and an API token"));
    };
    let text = line.to_str().unwrap_or_default();
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refused("the Authorization header is not of the form 'Bearer TOKEN'"));
    }
    token.trim().parse().map_err(|_| refused("this is not an API token of this product"))
}

fn refused(detail: &'static str) -> Problem {
    Problem::new(Code::Unauthenticated, detail)
}
