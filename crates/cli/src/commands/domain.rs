//! `crossdock domain`: the domains of the default workspace.

use db::{Address, Timestamp};
use links::{CaseMode, Destination, Domain as LinkDomain, DomainSettings, Fallback, Host, RedirectCode};
use serde::Serialize;

use super::{default_workspace, open, print, print_json, say};
use crate::args::{Domain, DomainAction, DomainAdd};
use crate::exit::{Exit, usage};

#[derive(Debug, Serialize)]
struct Shown {
    id: db::Id,
    host: String,
    case: &'static str,
    root_redirect: Option<String>,
    fallback_url: Option<String>,
    expired_url: Option<String>,
    default_redirect_code: u16,
    default: bool,
}

impl Shown {
    fn of(domain: &LinkDomain, default: Option<db::Id>) -> Self {
        let settings = &domain.settings;
        Self {
            id: domain.id,
            host: domain.host.to_string(),
            case: settings.case_mode.as_str(),
            root_redirect: settings.root_redirect.as_ref().map(ToString::to_string),
            fallback_url: settings.fallback_url.as_ref().map(|url| url.as_str().to_owned()),
            expired_url: settings.expired_url.as_ref().map(ToString::to_string),
            default_redirect_code: settings.default_redirect_code.number(),
            default: default == Some(domain.id),
        }
    }
}

pub(super) async fn run(args: &Domain, address: &Address) -> anyhow::Result<Exit> {
    let database = open(address).await?;
    let workspace = default_workspace(&database).await?;
    match &args.action {
        DomainAction::List => {
            let mut reader = database.read().await?;
            let domains = links::domains(reader.conn(), workspace.id).await?;
            let shown: Vec<Shown> =
                domains.iter().map(|domain| Shown::of(domain, workspace.default_domain_id)).collect();
            if args.json {
                return print_json(&shown).map(|()| Exit::Clean);
            }
            for domain in shown {
                let default = if domain.default { "  (default)" } else { "" };
                print(format!(
                    "{}  {}  {}{default}",
                    domain.host, domain.case, domain.default_redirect_code
                ))?;
            }
        }
        DomainAction::Add(add) => {
            let (host, settings) = read(add)?;
            let mut tx = database.begin().await?;
            let domain = links::add_domain(&mut tx, workspace.id, &host, &settings, Timestamp::here())
                .await
                .map_err(|error| usage(error.to_string()))?;
            let default = add.default || workspace.default_domain_id.is_none();
            if default {
                links::set_default_domain(&mut tx, workspace.id, Some(domain.id)).await?;
            }
            tx.commit().await?;
            if args.json {
                return print_json(&Shown::of(&domain, default.then_some(domain.id))).map(|()| Exit::Clean);
            }
            say(format!("added the domain {host}; point its DNS here"));
        }
    }
    Ok(Exit::Clean)
}

fn read(add: &DomainAdd) -> anyhow::Result<(Host, DomainSettings)> {
    let host = Host::new(&add.host).map_err(|error| usage(format!("'{}': {error}", add.host)))?;
    let url = |option: &str, text: &Option<String>| {
        text.clone().map(Destination::new).transpose().map_err(|error| usage(format!("{option}: {error}")))
    };
    let settings = DomainSettings {
        case_mode: add.case.parse::<CaseMode>().map_err(|error| usage(error.to_string()))?,
        root_redirect: url("--root", &add.root)?,
        fallback_url: add
            .fallback
            .clone()
            .map(Fallback::new)
            .transpose()
            .map_err(|error| usage(format!("--fallback: {error}")))?,
        expired_url: url("--expired", &add.expired)?,
        default_redirect_code: RedirectCode::try_from(i64::from(add.code))
            .map_err(|error| usage(format!("--code: {error}")))?,
    };
    Ok((host, settings))
}
