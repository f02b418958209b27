use crossdock_links as links;
use db::{Id, Timestamp, on_both};
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
    assert_eq!(links::roll_up(&mut tx, 2).await.unwrap(), 2);
    assert_eq!(links::roll_up(&mut tx, 100).await.unwrap(), 2);
    assert_eq!(links::roll_up(&mut tx, 100).await.unwrap(), 0);
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
