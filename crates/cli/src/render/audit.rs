//! An audit on a terminal: the two rates, the tables, the mistakes.

use std::fmt::Write as _;

use owo_colors::{OwoColorize, Stream, Style};
use tilewright_audit::{Audit, Counts, LabelCounts, Outcome, Rate, Row};

use super::{indent, seconds, table};

pub(crate) fn audit(audit: &Audit) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", rate("false accepts", &audit.false_accept, "wrong or cheating candidates"));
    let _ = writeln!(out, "{}", rate("false rejects", &audit.false_reject, "honest candidates"));
    let _ = writeln!(out, "{}", counts("label", &audit.by_label));
    let _ = writeln!(out, "{}", counts("mechanism", &audit.by_mechanism));
    let _ = writeln!(out, "{}", by_label("verdict", &audit.by_verdict));
    let _ = writeln!(out, "{}", by_label("refused at", &audit.by_stage));
    for (title, outcome) in [
        ("accepted, but wrong or cheating", Outcome::FalseAccept),
        ("refused, but honest", Outcome::FalseReject),
        ("no verdict on the candidate", Outcome::Undecided),
        ("caught otherwise", Outcome::CaughtOtherwise),
        ("accepted as labelled: harmless", Outcome::Harmless),
    ] {
        list(&mut out, title, audit.with(outcome));
    }
    let _ = write!(out, "{}", circumstances(audit));
    out
}

fn rate(name: &str, rate: &Rate, of: &str) -> String {
    let style = if rate.count == 0 { Style::new().green().bold() } else { Style::new().red().bold() };
    let Some(share) = rate.share else { return format!("{name}  none of 0 {of}") };
    let share = format!("{:.2} %", share * 100.0);
    format!(
        "{name}  {}  {} of {} {of} (95 %: {:.2} to {:.2} %)",
        share.if_supports_color(Stream::Stdout, |share| share.style(style)),
        rate.count,
        rate.of,
        rate.low * 100.0,
        rate.high * 100.0
    )
}

fn counts(name: &str, groups: &[Counts]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut table = table(&[name, "files", "expected", "otherwise", "harmless", "no verdict", "mistaken", "95 %"]);
    for group in groups {
        let Counts { files, expected, otherwise, harmless, undecided, mistaken, .. } = group;
        let interval = format!("{:.1} to {:.1} %", mistaken.low * 100.0, mistaken.high * 100.0);
        let mut row = vec![group.name.clone()];
        row.extend([files, expected, otherwise, harmless, undecided, &mistaken.count].map(count));
        row.push(interval);
        table.add_row(row);
    }
    format!("\n{}", indent(&table.to_string()))
}

fn by_label(name: &str, groups: &[LabelCounts]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut table = table(&[name, "honest", "wrong", "hack"]);
    for group in groups {
        let LabelCounts { name, honest, wrong, hack } = group;
        table.add_row([name.clone(), count(honest), count(wrong), count(hack)]);
    }
    format!("\n{}", indent(&table.to_string()))
}

/// Nothing is easier to read as a dash.
fn count(count: &u64) -> String {
    if *count == 0 { "-".into() } else { count.to_string() }
}

fn list<'a>(out: &mut String, title: &str, rows: impl Iterator<Item = &'a Row>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "\n  {title}");
    for row in rows {
        let expected: Vec<_> = row.expected.iter().map(|kind| kind.name()).collect();
        let (verdict, expected) = (row.verdict.name(), expected.join("|"));
        let mechanisms =
            if row.mechanisms.is_empty() { String::new() } else { format!(" [{}]", row.mechanisms.join(" ")) };
        let _ = writeln!(out, "    {}{mechanisms}: {verdict} at {}, expected {expected}", row.candidate, row.stage);
        if let Some(reason) = &row.reason {
            let place = reason.line.map(|line| format!(" (line {line})")).unwrap_or_default();
            let _ = writeln!(out, "      {}{place} [{}]", one_line(&reason.message), reason.code);
        }
        if row.outcome == Outcome::Harmless && !row.note.is_empty() {
            let _ = writeln!(out, "      {}", row.note);
        }
    }
}

/// The first 200 characters, on one line.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn circumstances(audit: &Audit) -> String {
    let setting = &audit.setting;
    let mut out = format!(
        "\n  {} candidates in {} on {}, compiled for {}, under {}, seed {}\n  tilewright {}, torch {}, triton {}, {}",
        audit.files,
        seconds(audit.seconds),
        setting.target,
        setting.arch,
        setting.profiles.join(", "),
        setting.seed,
        setting.tilewright,
        setting.torch,
        setting.triton,
        audit.date
    );
    for (count, why) in
        [(audit.other_targets, "do not run on this target"), (audit.filtered, "do not match the filter")]
    {
        if count > 0 {
            let _ = write!(out, "\n  {count} candidates {why} and were not run");
        }
    }
    out
}
