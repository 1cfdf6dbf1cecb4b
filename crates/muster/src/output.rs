//! How results are printed: aligned tables for people, JSON, YAML and bare ids for programs.

use crate::exit::{Failure, Outcome};
use crate::names::Names;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Table,
    Wide,
    Json,
    Yaml,
    Name,
}

#[derive(Debug, Clone, clap::Args)]
pub struct OutputArgs {
    /// How to print the result; `wide` shows more columns, `name` only ids, for scripts
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub output: Format,
}

/// A column of a table; wide ones are left out of the narrow form.
pub struct Column {
    pub title: &'static str,
    pub wide: bool,
}

pub const fn col(title: &'static str) -> Column {
    Column { title, wide: false }
}

pub const fn wide(title: &'static str) -> Column {
    Column { title, wide: true }
}

/// Something that is listed and shown.
pub trait Shown: Serialize {
    const COLUMNS: &'static [Column];
    /// One text per column.
    fn cells(&self, names: &Names) -> Vec<String>;
    /// What names this object and no other.
    fn handle(&self) -> String;
}

/// Many objects.
pub fn list<T: Shown>(format: Format, items: &[T], names: &Names) -> Outcome {
    match format {
        Format::Table | Format::Wide => {
            let rows = items.iter().map(|item| item.cells(names)).collect();
            print(&table(T::COLUMNS, rows, format == Format::Wide))
        }
        Format::Name => print(&items.iter().map(|item| item.handle() + "\n").collect::<String>()),
        Format::Json | Format::Yaml => data(format, &items),
    }
}

/// One object; as a table it is turned on its side, so that nothing is cut.
pub fn one<T: Shown>(format: Format, item: &T, names: &Names) -> Outcome {
    match format {
        Format::Table | Format::Wide => {
            let titles = T::COLUMNS.iter().map(|column| column.title);
            print(&details(titles.zip(item.cells(names))))
        }
        Format::Name => print(&(item.handle() + "\n")),
        Format::Json | Format::Yaml => data(format, item),
    }
}

/// The result of a verb: a sentence for people, the object for programs.
pub fn done<T: Serialize>(format: Format, handle: &str, item: &T, sentence: &str) -> Outcome {
    match format {
        Format::Table | Format::Wide => print(&format!("{sentence}\n")),
        Format::Name => print(&format!("{handle}\n")),
        Format::Json | Format::Yaml => data(format, item),
    }
}

/// JSON or YAML; any other format counts as JSON.
pub fn data<T: Serialize + ?Sized>(format: Format, value: &T) -> Outcome {
    let text = match format {
        Format::Yaml => serde_norway::to_string(value).map_err(|error| Failure::other(error.to_string()))?,
        Format::Json | Format::Table | Format::Wide | Format::Name => {
            serde_json::to_string_pretty(value).map_err(|error| Failure::other(error.to_string()))? + "\n"
        }
    };
    print(&text)
}

/// Writes to stdout. A reader that has seen enough (`| head`) ends the program in peace.
pub fn print(text: &str) -> Outcome {
    print_bytes(text.as_bytes())
}

pub fn print_bytes(bytes: &[u8]) -> Outcome {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        done => Ok(done?),
    }
}

/// To a file or to stdout. What hubs give away holds secrets, so a new file is its owner's alone.
pub fn save(file: Option<&Path>, bytes: &[u8]) -> Outcome {
    let Some(path) = file else {
        return print_bytes(bytes);
    };
    create(path)?
        .write_all(bytes)
        .map_err(|error| unwritable(path, &error))
}

pub fn create(path: &Path) -> Outcome<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).map_err(|error| unwritable(path, &error))
}

pub fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::other(format!("cannot write {}: {error}", path.display()))
}

pub fn table(columns: &[Column], rows: Vec<Vec<String>>, with_wide: bool) -> String {
    let shown: Vec<usize> = (0..columns.len())
        .filter(|&i| with_wide || !columns[i].wide)
        .collect();
    let head = shown.iter().map(|&i| columns[i].title.to_owned()).collect();
    let mut lines: Vec<Vec<String>> = vec![head];
    for row in rows {
        lines.push(shown.iter().map(|&i| cell(&row[i])).collect());
    }
    let widths: Vec<usize> = (0..shown.len())
        .map(|i| {
            lines
                .iter()
                .map(|line| line[i].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    lines.iter().map(|line| aligned(line, &widths)).collect()
}

fn aligned(line: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = line
        .iter()
        .zip(widths)
        .map(|(text, &width)| format!("{text:<width$}"))
        .collect();
    padded.join("  ").trim_end().to_owned() + "\n"
}

fn cell(text: &str) -> String {
    if text.is_empty() {
        "-".into()
    } else {
        text.replace(['\n', '\r', '\t'], " ")
    }
}

/// `Name:   value` lines.
pub fn details<'a>(pairs: impl Iterator<Item = (&'a str, String)>) -> String {
    let pairs: Vec<(&str, String)> = pairs.collect();
    let width = pairs.iter().map(|(title, _)| title.len()).max().unwrap_or(0) + 1;
    pairs
        .iter()
        .map(|(title, value)| format!("{:<width$}  {}\n", format!("{title}:"), cell(value)))
        .collect()
}

/// The first part of an id, long enough to name it in practice.
pub fn short(id: uuid::Uuid) -> String {
    id.simple().to_string()[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_wide_ones_are_left_out() {
        let rows = || {
            vec![
                vec!["a".into(), "x".into(), "1".into()],
                vec!["long-name".into(), "".into(), "22".into()],
            ]
        };
        let columns = [col("NAME"), wide("INFO"), col("CPUS")];
        assert_eq!(
            table(&columns, rows(), false),
            "NAME       CPUS\na          1\nlong-name  22\n"
        );
        assert_eq!(
            table(&columns, rows(), true),
            "NAME       INFO  CPUS\na          x     1\nlong-name  -     22\n"
        );
    }

    #[test]
    fn an_empty_table_still_has_its_head() {
        assert_eq!(table(&[col("NAME"), col("AGE")], vec![], false), "NAME  AGE\n");
    }
}
