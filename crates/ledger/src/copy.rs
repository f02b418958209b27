//! Postgres' binary form of COPY (manual, "COPY", section "Binary Format").

use crate::field::Value;

/// Rows on their way into a COPY.
#[derive(Debug)]
pub(crate) struct CopyRows {
    bytes: Vec<u8>,
    columns: i16,
}

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// 2000-01-01, from which Postgres counts its microseconds.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

impl CopyRows {
    pub(crate) fn new(columns: usize, capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        bytes.extend_from_slice(SIGNATURE);
        bytes.extend_from_slice(&[0; 8]);
        Self { bytes, columns: i16::try_from(columns).expect("a table has at most 1,600 columns") }
    }

    /// Begins a row; as many fields as there are columns must follow.
    pub(crate) fn row(&mut self) {
        self.bytes.extend_from_slice(&self.columns.to_be_bytes());
    }

    pub(crate) fn null(&mut self) {
        self.bytes.extend_from_slice(&(-1_i32).to_be_bytes());
    }

    pub(crate) fn int(&mut self, number: i32) {
        self.field(&number.to_be_bytes());
    }

    pub(crate) fn field(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(&length(bytes.len()));
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn value(&mut self, value: &Value<'_>) {
        match value {
            Value::Null => self.null(),
            Value::Text(text) => self.field(text.as_bytes()),
            Value::Bigint(number) => self.field(&number.to_be_bytes()),
            Value::Boolean(yes) => self.field(&[u8::from(*yes)]),
            Value::Uuid(bytes) => self.field(bytes),
            Value::Timestamptz(micros) => self.field(&(micros - POSTGRES_EPOCH_MICROS).to_be_bytes()),
            Value::Json(token) => {
                // The version of jsonb's form, then its text.
                self.bytes.extend_from_slice(&length(token.len() + 1));
                self.bytes.push(1);
                self.bytes.extend_from_slice(token.as_bytes());
            }
            Value::Numeric(number) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&[0; 4]);
                number.write_binary(&mut self.bytes);
                let written = length(self.bytes.len() - start - 4);
                self.bytes[start..start + 4].copy_from_slice(&written);
            }
        }
    }

    /// What there is so far; more may follow.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// The whole, with its end.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&(-1_i16).to_be_bytes());
        self.bytes
    }
}

fn length(bytes: usize) -> [u8; 4] {
    i32::try_from(bytes).expect("a field is smaller than a page of the source").to_be_bytes()
}
