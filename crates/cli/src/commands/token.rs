//! `crossdock token`: API tokens of the default workspace.

use db::{Address, Timestamp};
use links::{Name, Scope};
use serde::Serialize;

use super::{chance, default_workspace, open, print, print_json, say};
use crate::args::{TokenAction, TokenCommand};
use crate::exit::{Exit, usage};

#[derive(Debug, Serialize)]
struct Shown {
    id: db::Id,
    name: String,
    prefix: String,
    scopes: Vec<&'static str>,
    created_at: Timestamp,
    revoked_at: Option<Timestamp>,
}

impl Shown {
    fn of(info: &links::TokenInfo) -> Self {
        Self {
            id: info.id,
            name: info.name.to_string(),
            prefix: info.prefix.clone(),
            scopes: info.scopes.iter().map(|scope| scope.as_str()).collect(),
            created_at: info.created_at,
            revoked_at: info.revoked_at,
        }
    }
}

#[derive(Debug, Serialize)]
struct Created<'t> {
    #[serde(flatten)]
    shown: Shown,
    token: &'t str,
}

pub(super) async fn run(args: &TokenCommand, address: &Address) -> anyhow::Result<Exit> {
    let database = open(address).await?;
    let workspace = default_workspace(&database).await?;
    match &args.action {
        TokenAction::List => {
            let mut reader = database.read().await?;
            let tokens = links::tokens(reader.conn(), workspace.id).await?;
            let shown: Vec<Shown> = tokens.iter().map(Shown::of).collect();
            if args.json {
                return print_json(&shown).map(|()| Exit::Clean);
            }
            for token in shown {
                let state = if token.revoked_at.is_some() { "  (revoked)" } else { "" };
                print(format!(
                    "{}  {}…  {}  {}{state}",
                    token.id,
                    token.prefix,
                    token.name,
                    token.scopes.join(" ")
                ))?;
            }
        }
        TokenAction::Create(create) => {
            let name = Name::new(&create.name).map_err(|error| usage(error.to_string()))?;
            let scopes = create
                .scope
                .iter()
                .map(|scope| scope.parse::<Scope>().map_err(|error| usage(error.to_string())))
                .collect::<anyhow::Result<Vec<Scope>>>()?;
            let scopes = if scopes.is_empty() { Scope::ALL.to_vec() } else { scopes };
            let mut tx = database.begin().await?;
            let (info, token) = links::create_token(
                &mut tx,
                workspace.id,
                &name,
                &scopes,
                None,
                Timestamp::here(),
                &mut chance(),
            )
            .await?;
            tx.commit().await?;
            if args.json {
                print_json(&Created { shown: Shown::of(&info), token: token.reveal() })?;
            } else {
                say("this token is shown once:");
                print(token.reveal())?;
            }
        }
        TokenAction::Revoke(which) => {
            let id = which.id.parse().map_err(|error: db::IdError| usage(error.to_string()))?;
            let mut tx = database.begin().await?;
            links::revoke_token(&mut tx, workspace.id, id, Timestamp::here())
                .await
                .map_err(|error| usage(error.to_string()))?;
            tx.commit().await?;
            say(format!("revoked the token {id}"));
        }
    }
    Ok(Exit::Clean)
}
