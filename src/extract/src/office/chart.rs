//! Text and data of charts and diagrams.

use crate::events::{Event, Events};
use crate::flow::Flow;
use crate::grid::write_row;
use crate::package::Package;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::BlockKind;

/// Maximum points written per series.
const POINTS_MAX: usize = 1000;
/// Maximum series written per chart.
const SERIES_MAX: usize = 100;

/// A column of chart data: name and points.
#[derive(Debug, Default)]
struct Series {
    name: String,
    categories: Vec<String>,
    values: Vec<String>,
}

/// Writes the chart or diagram called `name`: titles as paragraphs, data as a table.
pub(super) fn write(
    package: &Package<'_>,
    name: &str,
    flow: &mut Flow,
) -> Result<(), ExtractError> {
    let Some(part) = package.part(name)? else { return Ok(()) };
    let mut events = Events::new(part)?;
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut series: Vec<Series> = Vec::new();
    let mut value = String::new();
    let mut series_part = SeriesPart::Outside;
    let mut point = None;
    let mut is_text = false;
    loop {
        match events.next()? {
            Event::Open(element) => match element.name() {
                "ser" if series.len() < SERIES_MAX => series.push(Series::default()),
                "tx" if !series.is_empty() => series_part = SeriesPart::Name,
                "cat" | "xVal" => series_part = SeriesPart::Categories,
                "val" | "yVal" => series_part = SeriesPart::Values,
                "pt" => point = element.number("idx").and_then(|at| usize::try_from(at).ok()),
                "t" | "v" => {
                    is_text = true;
                    value.clear();
                }
                "f" | "formatCode" => events.skip()?,
                _ => {}
            },
            Event::Text(text) if is_text && value.len() + text.len() <= TEXT_BYTES_MAX => {
                value.push_str(&text);
            }
            Event::Text(_) => {}
            Event::Close(name) => match name.as_str() {
                // The text of a diagram is an element `t` around paragraphs with elements `t`.
                "t" if std::mem::take(&mut is_text) => line.push_str(&value),
                "v" => {
                    is_text = false;
                    if let Some(series) = series.last_mut() {
                        series.add(series_part, point, value.trim());
                    }
                }
                "p" if !line.trim().is_empty() => lines.push(std::mem::take(&mut line)),
                "tx" | "cat" | "xVal" | "val" | "yVal" => series_part = SeriesPart::Outside,
                _ => {}
            },
            Event::End => break,
        }
    }
    for line in &lines {
        flow.block(BlockKind::Paragraph, line.trim())?;
    }
    write_data(&series, flow)
}

#[derive(Debug, Clone, Copy)]
enum SeriesPart {
    Outside,
    Name,
    Categories,
    Values,
}

impl Series {
    fn add(&mut self, part: SeriesPart, point: Option<usize>, value: &str) {
        let points = match part {
            SeriesPart::Outside => return,
            SeriesPart::Name => return value.clone_into(&mut self.name),
            SeriesPart::Categories => &mut self.categories,
            SeriesPart::Values => &mut self.values,
        };
        // Points without a value are left out of the file.
        let at = point.unwrap_or(points.len());
        if at >= POINTS_MAX {
            return;
        }
        if points.len() <= at {
            points.resize(at + 1, String::new());
        }
        // The innermost of several levels of categories comes first.
        if points[at].is_empty() {
            value.clone_into(&mut points[at]);
        }
    }
}

fn write_data(series: &[Series], flow: &mut Flow) -> Result<(), ExtractError> {
    let Some(longest) = series.iter().map(|series| series.values.len()).max() else {
        return Ok(());
    };
    let categories = series.iter().map(|series| &series.categories).find(|all| !all.is_empty());
    let mut markdown = String::new();
    let mut row: Vec<String> = vec![String::new()];
    row.extend(series.iter().map(|series| series.name.clone()));
    write_row(&row, true, &mut markdown);
    for point in 0..longest {
        let category = categories.and_then(|all| all.get(point)).cloned().unwrap_or_default();
        row.clear();
        row.push(category);
        row.extend(series.iter().map(|s| s.values.get(point).cloned().unwrap_or_default()));
        write_row(&row, false, &mut markdown);
    }
    flow.block(BlockKind::Table, &markdown)
}
