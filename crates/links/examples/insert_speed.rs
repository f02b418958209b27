//! How many links a second `insert_links` writes: chunks of 1,000, one transaction each, with 1.3 slugs, a tag, an origin
//! and half a kilobyte of the vendor's JSON per link.
//!
//! `cargo run --release -p crossdock-links --example insert_speed -- sqlite://speed.db 100000` (a fresh database)

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::time::{Duration, Instant};

use crossdock_links as links;
use db::{Database, Id, Timestamp};
use links::{
    Content, Destination, DomainSettings, Host, Name, NewLink, NewOrigin, Place, Slug, SourceKey, Text,
};

const CHUNK: usize = 1_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "sqlite://insert_speed.db".into());
    let count: usize = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let database = Database::open(&address.parse()?).await?;
    database.migrate(&links::ROOM).await?;
    let mut tx = database.begin().await?;
    let now = db::now(tx.conn()).await?;
    let (workspace, _) = links::ensure_default_workspace(&mut tx, now).await?;
    let host = Host::new("go.example.com")?;
    let (domain, _) =
        links::ensure_domain(&mut tx, workspace.id, &host, &DomainSettings::default(), now).await?;
    tx.commit().await?;
    let start = Id::new().get();
    let mut spent = [Duration::ZERO; 3];
    let mut busy = [0.0; 3];
    for first in (0..count).step_by(CHUNK) {
        let chunk = (first..(first + CHUNK).min(count))
            .map(|i| link(start, i, domain.id, now))
            .collect::<Result<Vec<_>, _>>()?;
        let places: Vec<Place> = chunk.iter().flat_map(|link| link.slugs.clone()).collect();
        let (clock, cpu) = (Instant::now(), cpu_seconds());
        let mut tx = database.begin().await?;
        let source_ids: Vec<&str> =
            chunk.iter().filter_map(|link| link.origin.as_ref()).map(|origin| origin.source.id()).collect();
        let known = links::origins_of(tx.conn(), workspace.id, "bitly", domain.id, &source_ids).await?;
        let taken = links::taken(tx.conn(), &places).await?;
        let (looked, looked_cpu) = (clock.elapsed(), cpu_seconds());
        let lost = links::insert_links(&mut tx, workspace.id, &chunk, now).await?;
        let (inserted, inserted_cpu) = (clock.elapsed(), cpu_seconds());
        tx.commit().await?;
        spent[0] += looked;
        spent[1] += inserted - looked;
        spent[2] += clock.elapsed() - inserted;
        busy[0] += looked_cpu - cpu;
        busy[1] += inserted_cpu - looked_cpu;
        busy[2] += cpu_seconds() - inserted_cpu;
        if !(known.is_empty() && taken.is_empty() && lost.is_empty()) {
            return Err("the database is not fresh".into());
        }
    }
    let rate = |time: Duration| count as f64 / time.as_secs_f64();
    println!("links {count}");
    println!("insert_links alone {:.0}/s", rate(spent[1]));
    println!("with commit {:.0}/s", rate(spent[1] + spent[2]));
    println!("with look-ups and commit {:.0}/s", rate(spent.iter().sum()));
    let micros = busy.map(|seconds| seconds * 1e6 / count as f64);
    println!(
        "this process's CPU per link: look-ups {:.0} µs, insert {:.0} µs, commit {:.0} µs",
        micros[0], micros[1], micros[2]
    );
    Ok(())
}

/// The CPU time of this process (all threads), where `/proc` tells it; a machine that others use does not blur it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn link(start: i64, i: usize, domain_id: Id, now: Timestamp) -> Result<NewLink, Box<dyn std::error::Error>> {
    // Scrambled, as the slugs of an account are.
    let code = (start as u64).wrapping_add(i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut slugs = vec![Place { domain_id, slug: Slug::new(&format!("{code:x}"))? }];
    if i % 10 < 3 {
        slugs.push(Place { domain_id, slug: Slug::new(&format!("campaign-{code:x}"))? });
    }
    let destination =
        format!("https://www.example.com/products/{i}?utm_source=newsletter&utm_campaign={code}");
    let mut content = Content::to(Destination::new(destination.as_str())?, now);
    content.title = Some(Text::new(format!("Product {i}: a title of the usual length")));
    content.tags = vec![Name::new("imported:bitly")?];
    let source_json = format!(
        "{{\"created_at\":\"2026-01-31T08:15:00+0000\",\"id\":\"go.example.com/{code:x}\",\"long_url\":\"{destination}\",\
         \"title\":\"Product {i}\",\"archived\":false,\"created_by\":\"user1\",\"client_id\":\"0a1b\",\"tags\":[\"mail\"],\
         \"references\":{{\"group\":\"https://api-ssl.bitly.com/v4/groups/Ba1bc23dE4F\"}},\"filler\":\"{}\"}}",
        "x".repeat(100)
    );
    let origin = NewOrigin {
        source: SourceKey::new("bitly", &format!("go.example.com/{code:x}"))?,
        domain_id,
        job_id: Id::from_stored(1),
        source_digest: code.to_le_bytes().repeat(2),
        source_json: Some(Text::new(source_json)),
    };
    Ok(NewLink { id: Id::new(), content, slugs, origin: Some(origin) })
}
