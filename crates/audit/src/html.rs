//! The report as one page that needs nothing else.

use minijinja::context;
use minijinja::value::Serde;

use crate::report::{Audit, Outcome};

const TEMPLATE: &str = include_str!("report.html");

impl Audit {
    /// The page, complete in itself: no scripts, styles, fonts or images from elsewhere.
    ///
    /// # Errors
    /// A mistake in the template.
    pub fn html(&self) -> Result<String, minijinja::Error> {
        let mut environment = tilewright_page::environment()?;
        environment.add_filter("percent", |share: f64| format!("{:.2}", share * 100.0));
        environment.add_template("report", TEMPLATE)?;
        let rows = |outcome| self.with(outcome).collect::<Vec<_>>();
        let lists = [
            ("Accepted, but wrong or cheating", rows(Outcome::FalseAccept)),
            ("Refused, but honest", rows(Outcome::FalseReject)),
            ("No verdict on the candidate", rows(Outcome::Undecided)),
            ("Caught, but with another verdict than expected", rows(Outcome::CaughtOtherwise)),
            ("Accepted as labelled: harmless", rows(Outcome::Harmless)),
        ];
        environment.get_template("report")?.render(context! { audit => Serde(self), lists => Serde(&lists) })
    }
}
