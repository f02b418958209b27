//! `crossdock simulate`: a vendor's API in a box.

use std::time::Duration;

use anyhow::Context;
use simulators::bitly::{Account, FaultPlan, Options, Server, Shape};

use super::{print, print_json, stop_on_signal};
use crate::args::SimulateBitly;
use crate::exit::{Exit, usage};

pub(super) async fn bitly(args: &SimulateBitly) -> anyhow::Result<Exit> {
    if args.help_faults {
        for (name, meaning) in FaultPlan::NAMES {
            print(format!("{name:24} {meaning}"))?;
        }
        return Ok(Exit::Clean);
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

pub(super) fn plan(text: &str) -> anyhow::Result<FaultPlan> {
    text.parse().map_err(|error| {
        usage(format!("--faults: {error}; `crossdock simulate bitly --help-faults` lists them"))
    })
}
