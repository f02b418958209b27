//! `crossdock backup`: a copy that opens, made while the database is in use.

use crate::ground::{Database, Ground, Process, Simulator};

#[test]
fn a_backup_made_during_an_import_opens_and_goes_on() {
    let ground = Ground::new(Database::Sqlite);
    // The tenth list request, somewhere in the middle, is answered so late that the backup is made before.
    let account = Simulator::start(700, &["--faults", "slow@10:10000"]);
    let mut import = Process::start(&mut ground.import_command(&account, &[]));
    let deadline = std::time::Instant::now() + crate::ground::PATIENCE;
    while account.pages_asked() < 3 {
        assert!(std::time::Instant::now() < deadline, "pages are asked for: {}", import.rest_of_talk());
    }
    let done = ground.run(&["backup", "copy.db"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(import.wait(), 0, "{}", import.rest_of_talk());

    let url = format!("sqlite://{}", ground.folder.path().join("copy.db").display());
    let mut resumed = ground.import_command(&account, &["--database", &url]);
    let done = crate::ground::Done::of(&mut resumed);
    done.says(&["going on with import"]);
    assert_eq!((done.code, done.json()["imported"].as_i64()), (0, Some(700)), "{done:?}");
    ground.holds_nowhere(&account.token);
}

#[test]
fn a_backup_overwrites_nothing_and_invents_nothing() {
    let ground = Ground::new(Database::Sqlite);
    let done = ground.run(&["backup", "copy.db"]);
    assert_eq!(done.code, 2, "there is no database yet: {done:?}");
    ground.json(&["domain", "list", "--json"]);
    std::fs::write(ground.folder.path().join("copy.db"), "precious").expect("the file can be written");
    let done = ground.run(&["backup", "copy.db"]);
    assert_eq!(done.code, 2, "{done:?}");
    done.says(&["copy.db"]);
    assert_eq!(std::fs::read(ground.folder.path().join("copy.db")).expect("it is there"), b"precious");
}
