//! `crossdock simulate`: a vendor's API in a box.

use std::io::{BufWriter, Write};
use std::time::Duration;

use anyhow::Context;
use simulators::bitly::{Account, FaultPlan, Options, Server, Shape};
use simulators::wallet_logs;

use super::{print, print_json, stop_on_signal};
use crate::args::{SimulateBitly, SimulateWalletLogs};
use crate::exit::{Exit, usage};

pub(super) async fn bitly(args: &SimulateBitly) -> anyhow::Result<Exit> {
    if args.help_faults {
        return help_faults(FaultPlan::NAMES);
    }
    let faults = plan(&args.faults)?;
    let shape = Shape {
        domain: args.domain.clone(),
        groups: args.groups.max(1),
        empty_group: args.empty_group,
        vendor_domain_percent: args.vendor_domain_percent,
        ..Shape::default()
    };
    let account = Account::shaped(args.count, args.seed, shape);
    let options = Options { latency: Duration::from_millis(args.latency_ms), ..Options::default() };
    let running = Server::start(args.listen, account, faults, options)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    print_json(&running.ready())?;
    stop_on_signal()?.cancelled().await;
    running.shutdown().await;
    Ok(Exit::Clean)
}

pub(super) async fn wallet_logs(args: &SimulateWalletLogs) -> anyhow::Result<Exit> {
    if args.help_faults {
        return help_faults(wallet_logs::FaultPlan::NAMES);
    }
    let logs = wallet_logs::Logs::generate(args.count, args.seed);
    if args.print_accounts {
        return print_accounts(&logs);
    }
    let faults: wallet_logs::FaultPlan = args.faults.parse().map_err(|error: wallet_logs::PlanError| {
        usage(format!("--faults: {error}; `crossdock simulate wallet-logs --help-faults` lists them"))
    })?;
    let options = wallet_logs::Options {
        latency: Duration::from_millis(args.latency_ms),
        token: args.token.clone(),
        partitions: args.partitions,
        ..wallet_logs::Options::default()
    };
    let running = wallet_logs::Server::start(args.listen, logs, faults, options)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    print_json(&running.ready())?;
    stop_on_signal()?.cancelled().await;
    running.shutdown().await;
    Ok(Exit::Clean)
}

fn print_accounts(logs: &wallet_logs::Logs) -> anyhow::Result<Exit> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    logs.write_accounts_script(&mut out)
        .and_then(|()| out.flush())
        .context("cannot write to standard output")?;
    Ok(Exit::Clean)
}

fn help_faults(names: &[(&str, &str)]) -> anyhow::Result<Exit> {
    for (name, meaning) in names {
        print(format!("{name:24} {meaning}"))?;
    }
    Ok(Exit::Clean)
}

pub(super) fn plan(text: &str) -> anyhow::Result<FaultPlan> {
    text.parse().map_err(|error| {
        usage(format!("--faults: {error}; `crossdock simulate bitly --help-faults` lists them"))
    })
}
