//! What only the target can say of a declaration: whether its queries fit, which columns they give, whether the key is one.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use crate::declaration::{Declaration, Folder, MAP, PIPELINE, PROOF, Problem};
use crate::field::FieldType;
use crate::sql::{self, Column, Shape, quoted};

/// A column of the target as its server describes it.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
struct TargetColumn {
    name: String,
    kind: String,
    /// The type with its modifier, for messages.
    shown: String,
    /// It must be given: not null, without default, identity or generation.
    required: bool,
    /// Generated always: it cannot be given.
    generated: bool,
}

/// Asks the target, which is to be written: its key must be one.
///
/// # Errors
/// Every problem, in order of file and line. The outer error is the database's.
pub async fn shape(
    conn: &mut PgConnection,
    declaration: &Declaration,
    folder: &Folder,
) -> db::Result<Result<Shape, Vec<Problem>>> {
    asked(conn, declaration, folder, true).await
}

/// Asks the target, which is only to be read: rows may stand there twice because the key's index is gone.
///
/// # Errors
/// As [`shape`].
pub async fn shape_to_read(
    conn: &mut PgConnection,
    declaration: &Declaration,
    folder: &Folder,
) -> db::Result<Result<Shape, Vec<Problem>>> {
    asked(conn, declaration, folder, false).await
}

async fn asked(
    conn: &mut PgConnection,
    declaration: &Declaration,
    folder: &Folder,
    writes: bool,
) -> db::Result<Result<Shape, Vec<Problem>>> {
    let mut problems = Vec::new();
    let columns = target_columns(conn, declaration).await?;
    if columns.is_empty() {
        let line = Some(declaration.target.lines.0);
        let text = format!(
            "there is no table {} in this database; create it first, or correct [target] table",
            sql::target_name(declaration)
        );
        return Ok(Err(vec![Problem::of(PIPELINE, line, text)]));
    }
    if writes {
        key(conn, declaration, &columns, &mut problems).await?;
    }
    let mut tx = conn.begin().await?;
    sqlx::raw_sql(AssertSqlSafe(sql::create_staged(declaration))).execute(&mut *tx).await?;
    let query = format!(
        "CREATE TEMP TABLE _mapped ON COMMIT DROP AS SELECT * FROM (\n{}\n) AS m WHERE false",
        declaration.map
    );
    let mapped = described(&mut tx, &query, "_mapped", MAP, folder, &mut problems).await?;
    let query = format!(
        "CREATE TEMP TABLE _proof ON COMMIT DROP AS WITH target AS (SELECT * FROM {} WHERE false) SELECT * FROM (\n{}\n) AS p",
        sql::target_name(declaration),
        declaration.proof
    );
    let proof = described(&mut tx, &query, "_proof", PROOF, folder, &mut problems).await?;
    let mut shape = Shape { columns: Vec::new(), rejects: false, filters: false, proved: Vec::new() };
    if let Some(mapped) = mapped {
        map_columns(declaration, &columns, &mapped, &mut shape, &mut problems);
    }
    if let Some(proof) = proof {
        proof_columns(declaration, &proof, &mut shape, &mut problems);
    }
    tx.execute(AssertSqlSafe(sql::quarantined_view(0))).await?;
    for check in &declaration.checks {
        let query = format!(
            "CREATE TEMP TABLE _check ON COMMIT DROP AS SELECT * FROM (\n{}\n) AS c WHERE false",
            check.sql
        );
        if described(&mut tx, &query, "_check", &check.file, folder, &mut problems).await?.is_some() {
            tx.execute("DROP TABLE _check").await?;
        }
    }
    if problems.is_empty() {
        types(&mut tx, declaration, &shape, &columns, &mut problems).await?;
    }
    tx.rollback().await?;
    problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    Ok(if problems.is_empty() { Ok(shape) } else { Err(problems) })
}

async fn target_columns(conn: &mut PgConnection, declaration: &Declaration) -> db::Result<Vec<TargetColumn>> {
    Ok(sqlx::query_as(
        "SELECT a.attname::text AS name, format_type(a.atttypid, NULL) AS kind,
            format_type(a.atttypid, a.atttypmod) AS shown,
            a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS required,
            a.attgenerated <> '' OR a.attidentity = 'a' AS generated
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY a.attnum",
    )
    .persistent(false)
    .bind(sql::target_name(declaration))
    .fetch_all(conn)
    .await?)
}

/// The key is made of columns that exist, and a unique index over just them makes it one.
async fn key(
    conn: &mut PgConnection,
    declaration: &Declaration,
    columns: &[TargetColumn],
    problems: &mut Vec<Problem>,
) -> db::Result<()> {
    let line = Some(declaration.target.lines.1);
    let table = sql::target_name(declaration);
    let key = &declaration.target.key;
    let unknown: Vec<&String> =
        key.iter().filter(|name| !columns.iter().any(|column| column.name == **name)).collect();
    if !unknown.is_empty() {
        let names = unknown.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        problems.push(Problem::of(PIPELINE, line, format!("{table} has no column {names}")));
        return Ok(());
    }
    let unique: bool = sqlx::query_scalar(
        "SELECT EXISTS (
            SELECT 1 FROM pg_index i
            WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indimmediate
                AND i.indpred IS NULL AND i.indexprs IS NULL
                AND (SELECT array_agg(a.attname::text ORDER BY a.attname::text)
                    FROM unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
                    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                    WHERE k.place <= i.indnkeyatts)
                = (SELECT array_agg(name ORDER BY name) FROM unnest($2::text[]) AS name))",
    )
    .persistent(false)
    .bind(&table)
    .bind(key)
    .fetch_one(conn)
    .await?;
    if !unique {
        let names: Vec<String> = key.iter().map(|name| quoted(name)).collect();
        problems.push(Problem::of(
            PIPELINE,
            line,
            format!(
                "no unique index makes ({0}) a key of {table}; without one nothing keeps a record from coming twice. \
                 CREATE UNIQUE INDEX ON {table} ({0});",
                names.join(", ")
            ),
        ));
    }
    Ok(())
}

/// Runs a query over nothing into a table and reads that table's columns; `None` if the server refuses it.
async fn described(
    tx: &mut PgConnection,
    query: &str,
    table: &str,
    file: &str,
    folder: &Folder,
    problems: &mut Vec<Problem>,
) -> db::Result<Option<BTreeMap<String, String>>> {
    sqlx::raw_sql("SAVEPOINT described").execute(&mut *tx).await?;
    match tx.execute(AssertSqlSafe(query.to_owned())).await {
        Ok(_) => {}
        Err(sqlx::Error::Database(error)) => {
            problems.push(refused(&*error, query, file, folder));
            sqlx::raw_sql("ROLLBACK TO SAVEPOINT described").execute(&mut *tx).await?;
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    }
    let rows: Vec<(String, String)> = sqlx::query_as(
        "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = to_regclass('pg_temp.' || $1) AND attnum > 0",
    )
    .persistent(false)
    .bind(table)
    .fetch_all(tx)
    .await?;
    Ok(Some(rows.into_iter().collect()))
}

/// The server's complaint, at the line of the file that it is about.
fn refused(error: &dyn sqlx::error::DatabaseError, query: &str, file: &str, folder: &Folder) -> Problem {
    use sqlx::postgres::{PgDatabaseError, PgErrorPosition};
    let error = error.downcast_ref::<PgDatabaseError>();
    let position = match error.position() {
        Some(PgErrorPosition::Original(position)) => Some(position),
        _ => None,
    };
    // The folder's text begins behind the first line of ours.
    let line = position.and_then(|position| {
        let before: String = query.chars().take(position.saturating_sub(1)).collect();
        let line = before.matches('\n').count();
        let lines = folder.text(file).lines().count();
        (1..=lines.max(1)).contains(&line).then_some(line)
    });
    let mut text = error.message().to_owned();
    for more in [error.detail(), error.hint()].into_iter().flatten() {
        text = format!("{text}; {more}");
    }
    Problem::of(file, line, text)
}

fn map_columns(
    declaration: &Declaration,
    columns: &[TargetColumn],
    mapped: &BTreeMap<String, String>,
    shape: &mut Shape,
    problems: &mut Vec<Problem>,
) {
    let mut problem = |text: String| problems.push(Problem::of(MAP, None, text));
    let table = sql::target_name(declaration);
    match mapped.get("_record").map(String::as_str) {
        Some("integer") => {}
        Some(_) => problem("`_record` is that of `staged`, unchanged".to_owned()),
        None => problem("it gives no column `_record`; begin it with SELECT staged._record, …".to_owned()),
    }
    shape.rejects = mapped.contains_key("_reject");
    shape.filters = mapped.contains_key("_filter");
    for name in mapped.keys() {
        if ["_record", "_reject", "_filter"].contains(&name.as_str()) {
            continue;
        }
        match columns.iter().find(|column| column.name == *name) {
            None => problem(format!("it gives a column `{name}`, which {table} has not")),
            Some(column) if column.generated => {
                problem(format!("it gives the column `{name}`, which {table} generates itself"));
            }
            Some(_) => {}
        }
    }
    for column in columns {
        let given = mapped.contains_key(&column.name);
        if given && !column.generated {
            shape.columns.push(Column { name: column.name.clone(), kind: column.kind.clone() });
        }
        if column.required && !given {
            problem(format!(
                "it does not give `{}`, which {table} needs ({} NOT NULL)",
                column.name, column.shown
            ));
        }
    }
    for name in &declaration.target.key {
        if !mapped.contains_key(name) && columns.iter().any(|column| column.name == *name) {
            problem(format!("it does not give `{name}`, which is part of the key"));
        }
    }
}

fn proof_columns(
    declaration: &Declaration,
    proof: &BTreeMap<String, String>,
    shape: &mut Shape,
    problems: &mut Vec<Problem>,
) {
    let mut problem = |text: String| problems.push(Problem::of(PROOF, None, text));
    if !proof.contains_key("_reference") {
        problem("it gives no column `_reference`: the reference of each row's record".to_owned());
    }
    for (name, kind) in proof.iter().filter(|(name, _)| *name != "_reference") {
        let Some(field) = declaration.fields.get(name) else {
            problem(format!("it gives a column `{name}`, and there is no such field in {PIPELINE}"));
            continue;
        };
        if !agrees(field.kind, kind) {
            problem(format!(
                "it gives `{name}` as {kind}, but the field is of the type {}; cast it in the proof",
                field.kind.sql()
            ));
        }
        shape.proved.push((name.clone(), field.kind));
    }
    if shape.proved.is_empty() && problems.is_empty() {
        problems.push(Problem::of(PROOF, None, "it gives no field back, so it proves nothing"));
    }
}

/// Whether values of a type of the server can be compared with a field's without losing anything.
fn agrees(field: FieldType, kind: &str) -> bool {
    match field {
        FieldType::Text => !["json", "jsonb", "bytea"].contains(&kind),
        FieldType::Bigint => ["bigint", "integer", "smallint", "numeric"].contains(&kind),
        FieldType::Numeric { .. } => ["bigint", "integer", "smallint", "numeric"].contains(&kind),
        FieldType::Boolean => kind == "boolean",
        FieldType::Timestamptz { .. } => kind == "timestamp with time zone",
        FieldType::Uuid => kind == "uuid" || kind == "text",
        FieldType::Json => kind == "jsonb" || kind == "json",
    }
}

/// The map's columns can be assigned to those of the target.
async fn types(
    tx: &mut PgConnection,
    declaration: &Declaration,
    shape: &Shape,
    columns: &[TargetColumn],
    problems: &mut Vec<Problem>,
) -> db::Result<()> {
    for column in &shape.columns {
        sqlx::raw_sql("SAVEPOINT described").execute(&mut *tx).await?;
        let name = quoted(&column.name);
        let query = format!(
            "EXPLAIN INSERT INTO {} ({name}) SELECT {name} FROM _mapped",
            sql::target_name(declaration)
        );
        let shown =
            columns.iter().find(|known| known.name == column.name).map_or("", |known| known.shown.as_str());
        match tx.execute(AssertSqlSafe(query)).await {
            Ok(_) => {}
            Err(sqlx::Error::Database(error)) => problems.push(Problem::of(
                MAP,
                None,
                format!(
                    "`{}` does not fit into {shown}: {}; cast it in the map",
                    column.name,
                    error.message()
                ),
            )),
            Err(error) => return Err(error.into()),
        }
        sqlx::raw_sql("ROLLBACK TO SAVEPOINT described").execute(&mut *tx).await?;
    }
    Ok(())
}
