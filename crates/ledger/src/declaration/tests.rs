use super::source::ranges;
use super::*;

const GOOD: &str = r#"
name = "logs"
[source]
url = "https://${HOST}/logs"
records = "/data"
[source.paging]
cursor = "/next"
param = "cursor"
[record]
id = "id"
reference = "L-{id}"
[fields.id]
pointer = "/id"
type = "bigint"
[fields.amount]
pointer = "/amount"
type = "numeric(20,4)"
[target]
table = "bank.logs"
key = ["reference"]
"#;

fn read(pipeline: &str) -> Result<Declaration, Vec<String>> {
    let folder = Folder::of([(PIPELINE, pipeline), (MAP, "SELECT 1;\n"), (PROOF, "SELECT 2")]);
    Declaration::read(&folder, &Variables::of([("HOST", "core.example.com")]))
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn a_declaration_is_read_with_its_variables() {
    let declaration = read(GOOD).unwrap();
    let Source::Http(http) = &declaration.source else { panic!("it has a URL") };
    assert_eq!(http.url, "https://core.example.com/logs");
    assert_eq!(declaration.reference.of("7"), "L-7");
    assert_eq!((declaration.map.as_str(), declaration.proof.as_str()), ("SELECT 1", "SELECT 2"));
    assert_eq!(declaration.target.schema.as_deref(), Some("bank"));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (from, to, expected) in [
        ("name = \"logs\"", "name = \"logs\"\nnmae = 1", "pipeline.toml:3: unknown field `nmae`"),
        ("${HOST}", "${PORT}", "pipeline.toml:4: ${PORT} is not set; give it with --set PORT="),
        ("https://${HOST}/logs", "ftp://x", "pipeline.toml:4: \"ftp://x\" is not a URL of http or https"),
        ("https://${HOST}/logs", "https://u:p@x/", "a URL holds no credential"),
        (
            "records = \"/data\"",
            "records = \"data\"",
            "pipeline.toml:5: \"data\" is not a JSON pointer: it begins with `/`",
        ),
        ("cursor = \"/next\"", "", "[source.paging] names either `cursor`"),
        ("cursor = \"/next\"", "cursor = \"/next\"\nlast = \"/id\"", "[source.paging] names either `cursor`"),
        ("id = \"id\"", "id = \"uid\"", "pipeline.toml:10: there is no field `uid`"),
        ("L-{id}", "L-{amount}", "pipeline.toml:11: a reference is a text around {id}"),
        ("type = \"bigint\"", "type = \"bigint\"\nnullable = true", "the id must be there"),
        (
            "type = \"bigint\"",
            "type = \"int\"",
            "pipeline.toml:14: \"int\" is no type; there are text, bigint",
        ),
        (
            "type = \"bigint\"",
            "type = \"bigint\"\noffset = \"Z\"",
            "pipeline.toml:15: `offset`, `zone` and `format` are rules for fields of the type timestamptz",
        ),
        (
            "[target]",
            "[fields.at]\npointer = \"/at\"\ntype = \"timestamptz\"\nzone = \"Europe/Atlantis\"\n[target]",
            "pipeline.toml:21: \"Europe/Atlantis\" is no zone such as \"Europe/Zurich\"",
        ),
        (
            "[target]",
            "[fields.at]\npointer = \"/at\"\ntype = \"timestamptz\"\noffset = \"Z\"\nzone = \"UTC\"\n[target]",
            "pipeline.toml:22: times without an offset follow `offset` or `zone`, not both",
        ),
        (
            "[target]",
            "[fields.at]\npointer = \"/at\"\ntype = \"timestamptz\"\nformat = \"epoch_millis\"\nzone = \"UTC\"\n[target]",
            "a time counted since 1970 has neither `offset` nor `zone`",
        ),
        (
            "type = \"numeric(20,4)\"",
            "type = \"numeric(20,4)\"\ndefault = \"x\"",
            "pipeline.toml:18: the default does not fit",
        ),
        ("[fields.amount]", "[fields.Amount]", "`Amount` is no name of a field"),
        ("key = [\"reference\"]", "key = []", "pipeline.toml:20: the key names at least one column"),
        ("key = [\"reference\"]", "key = [\"reference\"]\non_conflict = \"skip\"", "\"skip\" is no rule"),
        ("bank.logs", "a.b.c", "a table is named \"table\" or \"schema.table\""),
        ("[record]", "[source.auth]\nkind = \"bearer\"\n[record]", "says where the secret comes from"),
        (
            "[record]",
            "[source.auth]\nkind = \"token\"\nenv = \"T\"\n[record]",
            "[source.auth] is `kind = \"bearer\"`",
        ),
        (
            "[record]",
            "[source.auth]\nkind = \"bearer\"\nenv = \"HOST\"\n[record]",
            "${HOST} is a credential, and values of ${…} are stored with the job",
        ),
        (
            "[record]",
            "[source.headers]\nAuthorization = \"Bearer x\"\n[record]",
            "`Authorization` is a credential",
        ),
        (
            "[record]",
            "[source.partitions]\nparam = \"s\"\nvalues = [\"1\", \"1\"]\n[record]",
            "names one value twice",
        ),
        (
            "[record]",
            "[source.partitions]\nparam = \"s\"\n[record]",
            "[source.partitions] is `param` with `values`",
        ),
        (
            "[record]",
            "[source.until]\nparam = \"to\"\nlag = \"10 m\"\n[record]",
            "pipeline.toml:11: \"10 m\" is no time such as \"90s\", \"10m\"",
        ),
        ("[record]", "[source.until]\nlag = \"10m\"\n[record]", "`param` is missing"),
        ("[record]", "[source.sweep]\nparam = \"from\"\nback = 7\n[record]", "`back` is a time such as"),
        (
            "[record]",
            "[source.sweep]\nparam = \"from\"\nback = \"1h\"\n[source.partitions]\nfrom_param = \"a\"\nto_param = \"b\"\n\
             kind = \"id\"\nfrom = \"0\"\nto = \"9\"\nparts = 2\n[record]",
            "ranges of ids are swept by ids",
        ),
        (
            "[record]",
            "[source.until]\nparam = \"to\"\nlag = \"1h\"\n[source.partitions]\nfrom_param = \"a\"\nto_param = \"b\"\n\
             kind = \"time\"\nfrom = \"2024-01-01T00:00:00Z\"\nto = \"2024-01-02T00:00:00Z\"\nparts = 2\n[record]",
            "have parameters for their bounds",
        ),
        (
            "[record]",
            "[[source.errors]]\nmeans = \"oops\"\nstatus = 400\n[record]",
            "\"oops\" means nothing here",
        ),
        (
            "[record]",
            "[[source.errors]]\nmeans = \"retry\"\n[record]",
            "a rule says which answers it is about",
        ),
        ("[target]", "[certificate]\nsums = [{ field = \"id2\" }]\n[target]", "there is no field `id2`"),
        ("[target]", "[stage]\nchunk_records = 0\n[target]", "chunk_records lies between 1 and 100,000"),
        ("name = \"logs\"", "name = \"l ogs\"", "pipeline.toml:2: a name has 1 to 60 letters"),
        ("[record]", "[record", "pipeline.toml:9: "),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let found = read(&GOOD.replacen(from, to, 1)).expect_err(expected);
        assert!(found.iter().any(|problem| problem.contains(expected)), "{expected}: {found:#?}");
    }
}

#[test]
fn the_guides_example_is_read_as_it_stands() {
    let guide = include_str!("../../../../docs/ledger.md");
    let example =
        guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it has one");
    let folder = Folder::of([(PIPELINE, example), (MAP, "SELECT 1"), (PROOF, "SELECT 2")]);
    let variables = Variables::of([("CORE_URL", "https://core.example.com")]);
    let declaration =
        Declaration::read(&folder, &variables).map_err(|problems| format!("{problems:#?}")).unwrap();
    assert_eq!(declaration.fields.len(), 4);
}

#[test]
fn ranges_are_half_open_and_leave_nothing_out() {
    let found = ranges("id", "0", "10", 3).unwrap();
    assert_eq!(found, [("0", "3"), ("3", "6"), ("6", "10")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    let days = ranges("time", "2024-01-01T00:00:00Z", "2024-01-03T00:00:00Z", 2).unwrap();
    assert_eq!(days[0].1, days[1].0);
    assert!(days[0].1.starts_with("2024-01-02T00:00:00"), "{days:?}");
    assert_eq!(ranges("id", "0", "2", 5).unwrap().len(), 2);
    assert!(ranges("id", "5", "5", 2).is_err());
    assert!(ranges("id", "a", "5", 2).is_err());
    assert!(ranges("day", "1", "5", 2).is_err());
    assert!(ranges("time", "2024-01-01T00:00:00", "2024-01-03T00:00:00Z", 2).is_err());
}

#[test]
fn a_changed_text_changes_the_hash() {
    let one = Folder::of([("a", "b"), ("c", "")]);
    assert_ne!(one.hash(), Folder::of([("a", ""), ("c", "b")]).hash());
    assert_ne!(one.hash(), Folder::of([("ab", ""), ("c", "")]).hash());
    assert_eq!(one.hash(), Folder::of([("c", ""), ("a", "b")]).hash());
}

#[test]
fn a_query_without_words_is_none() {
    let folder = Folder::of([(PIPELINE, GOOD), (MAP, "-- nothing\n;"), (PROOF, "SELECT 2")]);
    let problems = Declaration::read(&folder, &Variables::of([("HOST", "x")])).unwrap_err();
    assert_eq!(problems[0].to_string(), "map.sql: it holds no query");
}
