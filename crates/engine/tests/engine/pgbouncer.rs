//! Behind PgBouncer in transaction mode there is no session: a whole job passes all the same.
//!
//! goauthentik/authentik#23876: a session lock stranded behind a transaction pooler.

use std::process::Stdio;

use db::testing::TestDatabase;
use db::{Address, Database};
use engine::Status;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::sink::{TestSink, create_table};
use crate::support::source::{Script, record, record_that};
use crate::support::{Bench, within};

const PLACES: [&str; 4] =
    ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"];

struct Bouncer {
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Bouncer {
    async fn before(url: &str) -> Self {
        let program =
            PLACES.into_iter().find(|place| std::path::Path::new(place).exists()).unwrap_or_else(|| {
                panic!(
                    "pgbouncer is missing (looked for {PLACES:?}): install it, for example with scripts/setup"
                )
            });
        let server = url::Url::parse(url).unwrap();
        let port = free_port().await;
        let folder = tempfile::tempdir().unwrap();
        let users = folder.path().join("users.txt");
        std::fs::write(&users, "\"postgres\" \"\"\n").unwrap();
        // As root it changes to a user with fewer rights, who must be able to read its files.
        let root =
            std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
        let user = if root { "user = nobody\n" } else { "" };
        let ini = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host={} port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = 4\n\
             ignore_startup_parameters = extra_float_digits\n{user}",
            server.host_str().unwrap(),
            server.port().unwrap_or(5432),
            users.display(),
        );
        std::fs::write(&ini, text).unwrap();
        use std::os::unix::fs::PermissionsExt;
        for path in [folder.path(), &users, &ini] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut child = Command::new(program)
            .arg(&ini)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        within("pgbouncer starts", async {
            while let Some(line) = log.next_line().await.unwrap() {
                said += &line;
                said += "\n";
                if line.contains("process up") {
                    return;
                }
            }
            panic!("pgbouncer ended: {said}");
        })
        .await;
        tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
        let mut through = server;
        through.set_host(Some("127.0.0.1")).unwrap();
        through.set_port(Some(port)).unwrap();
        through.set_query(Some("pgbouncer=true"));
        Self { child, url: through.to_string(), _folder: folder }
    }
}

async fn free_port() -> u16 {
    tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_job_passes_behind_pgbouncer() {
    let test = TestDatabase::open(db::Kind::Postgres, &[]).await;
    let mut bouncer = Bouncer::before(&test.url).await;
    let address: Address = bouncer.url.parse().unwrap();
    let database = Database::open(&address).await.unwrap();
    database.migrate(&engine::ROOM).await.unwrap();
    create_table(&database).await;
    for sink in [TestSink::serial(), TestSink::parallel()] {
        let mut records: Vec<_> = (0..600).map(record).collect();
        records[77] = record_that(77, "reject");
        records[400] = record_that(400, "refuse");
        let bench = Bench::over(database.clone(), Script::of(records, 10), sink);
        let other = bench.another_process().await;
        let id = bench.job().await;
        let (one, two) = (bench.start(), other.start());
        let job = one.rest_of(id).await;
        one.stop().await;
        two.stop().await;
        assert_eq!(job.status, Status::Completed, "{:?}", job.reason);
        assert_eq!((job.counts.imported + job.counts.unchanged, job.counts.failed), (598, 2));
        bench.assert_accounted(id).await;
        other.database.close().await;
    }
    database.close().await;
    bouncer.child.kill().await.unwrap();
    test.close().await;
}
