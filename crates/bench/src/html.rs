//! The report as one page that needs nothing else.

use minijinja::context;
use minijinja::value::{Serde, Value};

use crate::plot::{bar, figures};
use crate::report::{Limits, Report};

const TEMPLATE: &str = include_str!("report.html");

impl Report {
    /// The page, complete in itself: no scripts, styles, fonts or images from elsewhere.
    ///
    /// # Errors
    /// A mistake in the template.
    pub fn html(&self) -> Result<String, minijinja::Error> {
        let mut environment = tilewright_page::environment()?;
        environment.add_filter("percent", |share: f64| format!("{:.1}", share * 100.0));
        environment.add_filter("bare", |number: f64| number.to_string());
        environment.add_filter("times", |factor: f64| format!("{factor:.2}"));
        environment.add_function("bar", |value: f64, low: f64, high: f64| {
            Value::from_safe_string(bar(value, Limits { low, high }))
        });
        environment.add_template("report", TEMPLATE)?;
        let figures: Vec<Value> = figures(self)
            .into_iter()
            .map(|figure| {
                context! { title => figure.title, svg => Value::from_safe_string(figure.svg), caption => figure.caption }
            })
            .collect();
        environment.get_template("report")?.render(context! { report => Serde(self), figures })
    }
}
