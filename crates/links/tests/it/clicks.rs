use crossdock_links as links;
use db::{Conn, Id, Timestamp, Tx, on_both};
use links::{Click, Count};

use crate::world::{World, now};

const HOUR: i64 = 3_600_000_000;

on_both!(a5_77_people_and_programs_are_counted_apart, [&links::ROOM], |database| async move {
    let world = World::new(database).await;
    let (a, b) = (Id::new(), Id::new());
    let start = Timestamp::from_micros(now().micros() / HOUR * HOUR);
    let at = |hours: i64| Timestamp::from_micros(start.micros() + hours * HOUR + 59 * 60_000_000);
    let mut tx = world.tx().await;
    let click = |link_id, hours, bot| Click { link_id, at: at(hours), bot };
    let many: Vec<Click> = (0..2_500).map(|i| click(a, i64::from(i % 3), i % 5 == 0)).collect();
    links::record_clicks(&mut tx, now(), &many).await.unwrap();
    links::record_clicks(&mut tx, now(), &[click(b, 0, true)]).await.unwrap();
    assert_eq!(links::click_totals(tx.conn(), &[a, b]).await.unwrap(), []);
    for (limit, folded) in [(2, 2), (100, 2), (100, 0)] {
        let rolled = links::roll_up(&mut tx, limit).await.unwrap();
        assert_eq!(rolled, links::RolledUp { folded, set_aside: Vec::new() });
    }
    let totals = links::click_totals(tx.conn(), &[a, b, Id::new()]).await.unwrap();
    let mut expected = vec![(a, Count { humans: 2_000, bots: 500 }), (b, Count { humans: 0, bots: 1 })];
    expected.sort_by_key(|(id, _)| *id);
    assert_eq!(totals, expected);
    let hours = links::clicks_by_hour(tx.conn(), a, start, at(1)).await.unwrap();
    assert_eq!(
        hours.iter().map(|(hour, _)| *hour).collect::<Vec<_>>(),
        [start, Timestamp::from_micros(start.micros() + HOUR)]
    );
    tx.commit().await.unwrap();
});

/// A block as another version, or a disk, may leave it.
async fn insert_block(tx: &mut Tx, id: Id, bytes: &[u8]) {
    match tx.conn() {
        Conn::Sqlite(conn) => {
            let sql = "INSERT INTO click_batches (id, taken_at, clicks) VALUES (?, ?, ?)";
            sqlx::query(sql).bind(id).bind(now()).bind(bytes).execute(conn).await.map(drop).unwrap();
        }
        Conn::Postgres(pg) => {
            let sql = "INSERT INTO click_batches (id, taken_at, clicks) VALUES ($1, $2, $3)";
            pg.query(sql).bind(id).bind(now()).bind(bytes).execute(&mut *pg.conn).await.map(drop).unwrap();
        }
    }
}

on_both!(
    a_block_that_cannot_be_read_is_set_aside_and_the_others_go_on,
    [&links::ROOM],
    |database| async move {
        let world = World::new(database).await;
        let link = Id::new();
        let mut tx = world.tx().await;
        let click = Click { link_id: link, at: now(), bot: false };
        let mut damaged = Vec::new();
        for bytes in [&b""[..], b"\x01\x80", b"\x02future"] {
            damaged.push(Id::new());
            insert_block(&mut tx, damaged[damaged.len() - 1], bytes).await;
            links::record_clicks(&mut tx, now(), &[click]).await.unwrap();
        }
        // Fewer at a time than cannot be read: they do not fill the window for ever.
        let mut set_aside = Vec::new();
        for _ in 0..7 {
            set_aside.extend(links::roll_up(&mut tx, 1).await.unwrap().set_aside);
        }
        assert_eq!(set_aside, damaged);
        let totals = links::click_totals(tx.conn(), &[link]).await.unwrap();
        assert_eq!(totals, [(link, Count { humans: 3, bots: 0 })]);
        assert_eq!(crate::schema::count(&mut tx, "click_batches").await, 3, "they are kept");
        // A version that knows more looks at them again.
        let sql = "UPDATE click_batches SET unreadable_by = 0";
        match tx.conn() {
            Conn::Sqlite(conn) => drop(sqlx::query(sql).execute(conn).await.unwrap()),
            Conn::Postgres(pg) => drop(pg.query(sql).execute(&mut *pg.conn).await.unwrap()),
        }
        assert_eq!(links::roll_up(&mut tx, 100).await.unwrap().set_aside, damaged);
    }
);
