//! The statements over the target, made of the declaration's own queries.
//!
//! An engineer's queries are put between ours as text: they are code, from the folder that is stored and hashed with the
//! job, and no value of a record is ever among them. Values are bound or go by COPY.

use std::fmt::Write;

use crate::declaration::{Declaration, OnConflict};
use crate::field::FieldType;

/// A column of the target that the map fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type without a modifier, as Postgres prints it.
    pub kind: String,
}

/// What the declaration's queries give, as the target's server describes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The columns that the map fills, in the order of the target.
    pub columns: Vec<Column>,
    /// Whether the map may refuse records.
    pub rejects: bool,
    /// Whether the map may leave records out.
    pub filters: bool,
    /// The fields that the proof gives back, by name.
    pub proved: Vec<(String, FieldType)>,
}

/// The statements, ready to run.
#[derive(Debug, Clone)]
pub struct Statements {
    /// Makes the table `staged` for this transaction.
    pub create_staged: String,
    /// Fills it.
    pub copy_staged: String,
    /// Inserts rows of the records in `$1` (all, if it is NULL) but those in `$2`. Gives the mapped rows of records that
    /// are not written or not proved, and how many rows were written and how many the map gave.
    pub insert: String,
    /// As `insert`, over rows that are there already.
    pub update: String,
    /// Tells whether the mapped rows are in the target and how they differ: the rows of every record of which one is not
    /// simply there as mapped and proved, and how many rows all records have.
    pub classify: String,
    /// How many rows the map makes of each record.
    pub row_counts: String,
    /// The proved fields of the records in `$1` as they are in the target, for messages.
    pub proof_of: String,
}

/// Quotes a name (Postgres manual, 4.1.1).
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The target's name, quoted.
pub fn target_name(declaration: &Declaration) -> String {
    let target = &declaration.target;
    match &target.schema {
        Some(schema) => format!("{}.{}", quoted(schema), quoted(&target.table)),
        None => quoted(&target.table),
    }
}

/// The columns of `staged` with their types: number and reference of the record, the fields, and the presence columns.
pub fn staged_columns(declaration: &Declaration) -> Vec<(String, &'static str)> {
    let mut columns = vec![("_record".to_owned(), "integer"), ("_reference".to_owned(), "text")];
    columns.extend(declaration.fields.iter().map(|(name, field)| (name.clone(), field.kind.sql())));
    columns.extend(declaration.fields.values().filter_map(|field| Some((field.presence.clone()?, "text"))));
    columns
}

/// `CREATE TEMP TABLE staged`.
pub fn create_staged(declaration: &Declaration) -> String {
    let columns: Vec<String> =
        staged_columns(declaration).iter().map(|(name, kind)| format!("{} {kind}", quoted(name))).collect();
    // The server knows nothing of what a temporary table holds, and would sort it to join it. It would also compile the
    // statement anew for each chunk, which takes longer than running it.
    format!(
        "SET LOCAL enable_mergejoin = off; SET LOCAL jit = off; CREATE TEMP TABLE staged ({}) ON COMMIT DROP",
        columns.join(", ")
    )
}

/// A view `quarantined` for checks, so that they can leave out what quarantine explains: reference, id, code and detail of
/// the job's failed records, and their bytes as text (anything but plain letters escaped).
pub fn quarantined_view(job: i64) -> String {
    format!(
        "CREATE TEMP VIEW quarantined AS SELECT label AS reference, source_id, code, detail, encode(raw, 'escape') AS raw \
         FROM crossdock.quarantine WHERE job_id = {job}"
    )
}

/// The text that a proved field is compared by, in SQL; the counterpart of [`crate::field::Value::canonical`].
pub(crate) fn canonical(column: &str, kind: FieldType) -> String {
    match kind {
        FieldType::Text => format!("{column}::text"),
        FieldType::Bigint => format!("{column}::bigint::text"),
        FieldType::Numeric { .. } => format!("trim_scale({column}::numeric)::text"),
        FieldType::Boolean => format!("{column}::boolean::text"),
        FieldType::Timestamptz { .. } => {
            format!("(extract(epoch FROM {column}::timestamptz) * 1000000)::bigint::text")
        }
        FieldType::Uuid => format!("{column}::uuid::text"),
        FieldType::Json => format!("{column}::jsonb::text"),
    }
}

/// A proved value as it is compared with what was staged, while it is written: equal here if and only if its canonical
/// text is. Cheaper than texts and digests, which the certificate takes.
fn compared(column: &str, kind: FieldType) -> String {
    match kind {
        FieldType::Text => canonical(column, kind),
        other => format!("{column}::{}", other.sql()),
    }
}

/// The digest of a row of the proof, in SQL; the counterpart of [`crate::proof::digest`].
pub fn digest(proved: &[(String, FieldType)], row: &str) -> String {
    let parts: Vec<String> = proved
        .iter()
        .map(|(name, kind)| {
            let text = canonical(&format!("{row}.{}", quoted(name)), *kind);
            match kind {
                FieldType::Text | FieldType::Json => {
                    format!("coalesce(octet_length({text})::text || ':' || {text}, '-')")
                }
                _ => format!("coalesce({text}, '-')"),
            }
        })
        .collect();
    format!("substring(sha256(convert_to({} || ';', 'UTF8')) FOR 16)", parts.join(" || ';' || "))
}

impl Statements {
    /// For a declaration and what the server says of its queries.
    pub fn new(declaration: &Declaration, shape: &Shape) -> Self {
        let maker = Maker { declaration, shape };
        let names: Vec<String> = staged_columns(declaration).iter().map(|(name, _)| quoted(name)).collect();
        Self {
            create_staged: create_staged(declaration),
            copy_staged: format!("COPY staged ({}) FROM STDIN (FORMAT binary)", names.join(", ")),
            insert: maker.write(OnConflict::Compare),
            update: maker.write(OnConflict::Update),
            classify: maker.classify(),
            row_counts: format!("SELECT _record, count(*) FROM (\n{}\n) AS m GROUP BY 1", declaration.map),
            proof_of: maker.proof_of(),
        }
    }
}

struct Maker<'a> {
    declaration: &'a Declaration,
    shape: &'a Shape,
}

impl Maker<'_> {
    fn key(&self) -> Vec<String> {
        self.declaration.target.key.iter().map(|name| quoted(name)).collect()
    }

    fn reject(&self, row: &str) -> String {
        if self.shape.rejects { format!("{row}._reject::text") } else { "NULL::text".to_owned() }
    }

    fn filter(&self, row: &str) -> String {
        if self.shape.filters { format!("{row}._filter::text") } else { "NULL::text".to_owned() }
    }

    /// Chosen records of which no row is refused or left out.
    fn eligible(&self) -> String {
        let mut left_out = Vec::new();
        if self.shape.rejects {
            left_out.push("_reject IS NOT NULL");
        }
        if self.shape.filters {
            left_out.push("_filter IS NOT NULL");
        }
        let mut conditions = vec![
            "($1::int[] IS NULL OR _record = ANY($1))".to_owned(),
            "($2::int[] IS NULL OR _record <> ALL($2))".to_owned(),
        ];
        if !left_out.is_empty() {
            let some = left_out.join(" OR ");
            conditions.push(format!("_record NOT IN (SELECT _record FROM mapped WHERE {some})"));
        }
        conditions.join(" AND ")
    }

    /// Whether a row of the proof gives back what was staged: value by value, as [`canonical`] would.
    fn proved(&self) -> String {
        let same: Vec<String> = self
            .shape
            .proved
            .iter()
            .map(|(name, kind)| {
                let name = quoted(name);
                let (back, came) =
                    (compared(&format!("p.{name}"), *kind), compared(&format!("s.{name}"), *kind));
                match kind {
                    // Of equal images the texts are equal; they are made only where the images differ, which they may do
                    // for reasons that no text shows.
                    FieldType::Json => format!(
                        "(record_image_eq(ROW({back}), ROW({came})) OR {back}::text IS NOT DISTINCT FROM {came}::text)"
                    ),
                    _ => format!("{back} IS NOT DISTINCT FROM {came}"),
                }
            })
            .collect();
        format!("(p._reference IS NOT NULL AND {})", same.join(" AND "))
    }

    fn write(&self, rule: OnConflict) -> String {
        let names: Vec<String> = self.shape.columns.iter().map(|column| quoted(&column.name)).collect();
        let key = self.key();
        let others: Vec<&String> = names.iter().filter(|name| !key.contains(name)).collect();
        // Without a clause, which the server pays for row by row: a key that is there ends the statement, and somebody looks.
        let mut conflict = String::new();
        if rule == OnConflict::Update && !others.is_empty() {
            let sets: Vec<String> = others.iter().map(|name| format!("{name} = excluded.{name}")).collect();
            conflict = format!("ON CONFLICT ({}) DO UPDATE SET {} ", key.join(", "), sets.join(", "));
        }
        let mut sql = String::with_capacity(4096);
        write!(
            sql,
            "WITH mapped AS MATERIALIZED (\n{map}\n), target AS (\
             INSERT INTO {target} ({names}) SELECT {names} FROM mapped WHERE {eligible} ORDER BY {key} \
             {conflict}RETURNING *), proof AS (\n{proof}\n), \
             unproved AS (SELECT s._record FROM staged s LEFT JOIN proof p ON p._reference::text = s._reference \
             WHERE NOT {proved}) \
             SELECT u._record, m._record IS NOT NULL AS mapped, {reject} AS reject, {filter} AS filter, \
             NULL::bigint AS written, NULL::bigint AS rows \
             FROM unproved u LEFT JOIN mapped m ON m._record = u._record UNION ALL \
             SELECT NULL, NULL, NULL, NULL, (SELECT count(*) FROM target), (SELECT count(*) FROM mapped)",
            map = self.declaration.map,
            eligible = self.eligible(),
            target = target_name(self.declaration),
            names = names.join(", "),
            key = key.join(", "),
            proof = self.declaration.proof,
            proved = self.proved(),
            reject = self.reject("m"),
            filter = self.filter("m"),
        )
        .expect("writing to a string cannot fail");
        sql
    }

    /// The rows of the target that have the key of a mapped row.
    fn found(&self) -> String {
        let key = self.key();
        let equal: Vec<String> = key.iter().map(|name| format!("t.{name} = k.{name}")).collect();
        format!(
            "keys AS MATERIALIZED (SELECT DISTINCT {key} FROM mapped), \
             found AS MATERIALIZED (SELECT t.* FROM keys k CROSS JOIN LATERAL \
             (SELECT t.*, t.xmin AS _written_by FROM {target} t WHERE {equal} OFFSET 0) t)",
            key = key.join(", "),
            target = target_name(self.declaration),
            equal = equal.join(" AND "),
        )
    }

    fn classify(&self) -> String {
        let key = self.key();
        let joined: Vec<String> = key.iter().map(|name| format!("f.{name} = m.{name}")).collect();
        let (mut differ, mut differences) = (Vec::new(), Vec::new());
        for column in &self.shape.columns {
            if self.declaration.target.key.contains(&column.name) {
                continue;
            }
            let name = quoted(&column.name);
            let kind = comparable(&column.kind);
            let differs = format!("f.{name}::{kind} IS DISTINCT FROM m.{name}::{kind}");
            differences.push(format!(
                "CASE WHEN {differs} THEN jsonb_build_object({literal}, jsonb_build_array(f.{name}::text, m.{name}::text)) \
                 ELSE '{{}}' END",
                literal = literal(&column.name),
            ));
            differ.push(differs);
        }
        if differ.is_empty() {
            differ.push("false".to_owned());
            differences.push("'{}'::jsonb".to_owned());
        }
        format!(
            "WITH mapped AS MATERIALIZED (\n{map}\n), {found}, target AS (SELECT * FROM found), proof AS (\n{proof}\n), \
             told AS MATERIALIZED (SELECT s._record, m._record IS NOT NULL AS mapped, {reject} AS reject, \
             {filter} AS filter, f._written_by IS NOT NULL AS found, \
             coalesce(age(f._written_by) <= age($1::text::xid8::xid), false) AS ours, \
             CASE WHEN f._written_by IS NOT NULL AND ({differ}) THEN ({differences})::text END AS differences, \
             {proved} AS proved \
             FROM staged s LEFT JOIN mapped m ON m._record = s._record LEFT JOIN found f ON {joined} \
             LEFT JOIN proof p ON p._reference::text = s._reference) \
             SELECT _record, mapped, reject, filter, found, ours, differences, proved, NULL::bigint AS rows FROM told \
             WHERE _record IN (SELECT _record FROM told WHERE NOT (mapped AND reject IS NULL AND filter IS NULL \
             AND found AND NOT ours AND differences IS NULL AND proved)) \
             UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, (SELECT count(*) FROM told)",
            differ = differ.join(" OR "),
            differences = differences.join(" || "),
            map = self.declaration.map,
            found = self.found(),
            proof = self.declaration.proof,
            proved = self.proved(),
            reject = self.reject("m"),
            filter = self.filter("m"),
            joined = joined.join(" AND "),
        )
    }

    fn proof_of(&self) -> String {
        let fields: Vec<String> = self
            .shape
            .proved
            .iter()
            .map(|(name, kind)| {
                format!("{}, {}", literal(name), canonical(&format!("p.{}", quoted(name)), *kind))
            })
            .collect();
        format!(
            "WITH mapped AS MATERIALIZED (\n{map}\n), {found}, target AS (SELECT * FROM found), proof AS (\n{proof}\n) \
             SELECT s._record, (SELECT count(*) FROM proof p WHERE p._reference::text = s._reference) AS rows, \
             (SELECT jsonb_build_object({fields})::text FROM proof p WHERE p._reference::text = s._reference LIMIT 1) AS fields \
             FROM staged s WHERE s._record = ANY($1)",
            map = self.declaration.map,
            found = self.found(),
            proof = self.declaration.proof,
            fields = fields.join(", "),
        )
    }
}

/// A type with an equality, for a type that may have none.
fn comparable(kind: &str) -> &str {
    match kind {
        "json" => "jsonb",
        "xml" | "point" | "polygon" => "text",
        other => other,
    }
}

/// A text as a literal (Postgres manual, 4.1.2.1, with standard_conforming_strings).
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
