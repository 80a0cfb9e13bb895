//! Rows of a JSONL or Parquet file, as JSON objects.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row as ParquetRow};
use serde_json::{Map, Value};

use crate::error::BenchError;

/// One row: values by column.
pub(crate) type Row = Map<String, Value>;

/// Whether a path names a table, by its ending.
pub(crate) fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "jsonl" || ending == "parquet")
}

/// All rows of a `.jsonl` or `.parquet` file.
pub(crate) fn rows(path: &Path) -> Result<Vec<Row>, BenchError> {
    let file = File::open(path).map_err(BenchError::io("read", path))?;
    if path.extension().is_some_and(|ending| ending == "parquet") { parquet(path, file) } else { jsonl(path, file) }
}

fn jsonl(path: &Path, file: File) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for (number, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(BenchError::io("read", path))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let row = serde_json::from_slice(&plain_json(&line))
            .map_err(|why| BenchError::usage(format!("{}:{}: no JSON object: {why}", path.display(), number + 1)))?;
        rows.push(row);
    }
    Ok(rows)
}

/// JSON as Python writes it: `NaN` and `Infinity`, which JSON does not have, are null.
pub(crate) fn plain_json(text: &[u8]) -> Cow<'_, [u8]> {
    const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    if !text.windows(3).any(|part| part == b"NaN" || part == b"Inf") {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut at, mut is_text) = (Vec::with_capacity(text.len()), 0, false);
    while at < text.len() {
        let rest = &text[at..];
        let word = WORDS.iter().find(|word| !is_text && rest.starts_with(word));
        // Within a text, what is escaped ends nothing.
        let taken = word.map_or(if is_text && rest[0] == b'\\' { rest.len().min(2) } else { 1 }, |word| word.len());
        is_text ^= rest[0] == b'"';
        plain.extend_from_slice(if word.is_some() { b"null" } else { &rest[..taken] });
        at += taken;
    }
    Cow::Owned(plain)
}

fn parquet(path: &Path, file: File) -> Result<Vec<Row>, BenchError> {
    let wrong = |why: parquet::errors::ParquetError| BenchError::usage(format!("{}: {why}", path.display()));
    let reader = SerializedFileReader::new(file).map_err(wrong)?;
    let rows = reader.get_row_iter(None).map_err(wrong)?;
    rows.map(|row| row.map(|row| object(&row)).map_err(wrong)).collect()
}

fn object(row: &ParquetRow) -> Row {
    row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
}

/// A cell as JSON. What has no JSON form (dates, decimals) is given as text.
fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => (*value).into(),
        Field::Byte(value) => (*value).into(),
        Field::Short(value) => (*value).into(),
        Field::Int(value) => (*value).into(),
        Field::Long(value) => (*value).into(),
        Field::UByte(value) => (*value).into(),
        Field::UShort(value) => (*value).into(),
        Field::UInt(value) => (*value).into(),
        Field::ULong(value) => (*value).into(),
        Field::Float(value) => (*value).into(),
        Field::Double(value) => (*value).into(),
        Field::Str(value) => value.as_str().into(),
        Field::Bytes(value) => String::from_utf8_lossy(value.data()).into(),
        Field::Group(row) => Value::Object(object(row)),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        Field::MapInternal(map) => map.entries().iter().map(|(key, of)| (text(key), value(of))).collect::<Row>().into(),
        other => other.to_string().into(),
    }
}

fn text(field: &Field) -> String {
    match field {
        Field::Str(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text column, by the first of some names that is there. `a.b` reaches into an object.
pub(crate) fn text_of<'a>(row: &'a Row, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| find(row, name)?.as_str())
}

/// A whole number, by the first of some names that is there; also one written as text, or as a float, which a column of
/// whole numbers becomes as soon as one is missing.
pub(crate) fn number_of(row: &Row, names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| match find(row, name)? {
        Value::Number(number) => {
            let whole =
                || number.as_f64().filter(|value| value.fract() == 0.0 && *value >= 0.0).map(|value| value as u64);
            u32::try_from(number.as_u64().or_else(whole)?).ok()
        }
        Value::String(text) => text.trim().trim_start_matches("level").parse().ok(),
        _ => None,
    })
}

fn find<'a>(row: &'a Row, name: &str) -> Option<&'a Value> {
    let mut parts = name.split('.');
    let first = row.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// Writes a Parquet file of one text and one number column, compressed as the Hub's files are.
    pub(crate) fn write_parquet(path: &Path, text: (&str, &[&str]), number: (&str, &[i64])) {
        let schema = format!("message rows {{ REQUIRED BYTE_ARRAY {} (UTF8); REQUIRED INT64 {}; }}", text.0, number.0);
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let compression = parquet::basic::Compression::SNAPPY;
        let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
        let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let values: Vec<ByteArray> = text.1.iter().map(|text| ByteArray::from(*text)).collect();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(number.1, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
    }

    /// Writes a Parquet file of one row of text columns, which may lie in groups.
    pub(crate) fn write_texts(path: &Path, columns: &str, row: &[&str]) {
        let schema = Arc::new(parse_message_type(&format!("message rows {{ {columns} }}")).unwrap());
        let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for text in row {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&[ByteArray::from(*text)], None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn both_kinds_of_table_give_the_same_rows() {
        let folder = tempfile::tempdir().unwrap();
        let (jsonl, parquet) = (folder.path().join("a.jsonl"), folder.path().join("a.parquet"));
        std::fs::write(&jsonl, "{\"code\":\"x = 'é'\\n\",\"n\":3}\n\n{\"code\":\"\",\"n\":-1}\n").unwrap();
        write_parquet(&parquet, ("code", &["x = 'é'\n", ""]), ("n", &[3, -1]));
        assert_eq!(rows(&jsonl).unwrap(), rows(&parquet).unwrap());
    }

    /// As Python's `json` reads them, but for what JSON has not.
    #[test]
    fn numbers_that_json_has_not_are_null() {
        let plain = |text: &str| String::from_utf8(plain_json(text.as_bytes()).into_owned()).unwrap();
        for (text, want) in [
            (r#"{"a":NaN,"b":[Infinity,-Infinity]}"#, r#"{"a":null,"b":[null,null]}"#),
            (r#"{"NaN":"-Infinity \"NaN\" \\","b":NaN}"#, r#"{"NaN":"-Infinity \"NaN\" \\","b":null}"#),
            (r#"{"a":"NaN\"#, r#"{"a":"NaN\"#),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(plain(text), want);
        }
    }

    /// Columns as pandas and pyarrow write them: floats for whole numbers, texts that are not said to be texts, nothing
    /// at all, dates.
    #[test]
    fn odd_columns_are_read_as_what_they_mean() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("odd.parquet");
        let schema = "message rows { OPTIONAL DOUBLE level; OPTIONAL BYTE_ARRAY code; OPTIONAL INT32 day (DATE);
            OPTIONAL FLOAT score; OPTIONAL INT64 nothing; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&[2.0], Some(&[1]), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&[ByteArray::from("x")], Some(&[1]), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[20_000], Some(&[1]), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<FloatType>().write_batch(&[f32::NAN], Some(&[1]), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[], Some(&[0]), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        let rows = rows(&path).unwrap();
        assert_eq!((number_of(&rows[0], &["level"]), text_of(&rows[0], &["code"])), (Some(2), Some("x")));
        assert_eq!((&rows[0]["score"], &rows[0]["nothing"]), (&Value::Null, &Value::Null));
        assert!(rows[0]["day"].as_str().unwrap().starts_with("2024-10-04"));
    }

    #[test]
    fn a_broken_table_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "{\"a\":1}\n[1]\n").unwrap();
        assert!(rows(&path).unwrap_err().to_string().contains("a.jsonl:2"));
        std::fs::write(&path, b"{\"a\":1}\n{\"a\":\"\xff\"}\n").unwrap();
        assert!(matches!(rows(&path), Err(BenchError::Usage(message)) if message.contains("a.jsonl:2")));
        let path = folder.path().join("a.parquet");
        for bytes in ["no parquet", "", "PAR1PAR1"] {
            std::fs::write(&path, bytes).unwrap();
            assert!(matches!(rows(&path), Err(BenchError::Usage(_))));
        }
    }

    #[test]
    fn columns_are_found_by_any_of_their_names() {
        let row: Row = serde_json::from_str(r#"{"level":"level2","extra":{"code":"c"},"n":7}"#).unwrap();
        assert_eq!(text_of(&row, &["code", "extra.code"]), Some("c"));
        assert_eq!(number_of(&row, &["level"]), Some(2));
        assert_eq!(number_of(&row, &["absent", "n"]), Some(7));
        assert_eq!(number_of(&row, &["extra"]), None);
        let row: Row = serde_json::from_str(r#"{"whole":3.0,"half":0.5,"below":-1,"huge":4294967296.0}"#).unwrap();
        let numbers = ["whole", "half", "below", "huge"].map(|name| number_of(&row, &[name]));
        assert_eq!(numbers, [Some(3), None, None, None]);
    }
}
