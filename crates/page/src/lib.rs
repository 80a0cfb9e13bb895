//! What the HTML pages have in common: a template that they extend, with head, colours for light and dark, type, tables that sort by
//! a click, and print. A page needs no other file.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error};

const BASE: &str = include_str!("base.html");

/// An environment in which a template may begin with `{% extends "page" %}` and fill the blocks `title`, `style`, `body` and
/// `script`. What is put in is escaped.
///
/// # Errors
/// A mistake in the template that all extend.
pub fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template("page", BASE)?;
    Ok(environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_no_other_file_and_what_is_put_in_stays_text() {
        let page = environment().and_then(|environment| {
            environment.render_str(
                "{% extends \"page\" %}{% block title %}{{ text }}{% endblock %}{% block body %}<p>{{ text }}</p>{% endblock %}",
                minijinja::context! { text => "<script>alert(1)</script>" },
            )
        });
        let page = page.expect("a page");
        assert_eq!(page.matches("&lt;script&gt;").count(), 2);
        assert_eq!((page.matches("<script>").count(), page.matches("</style>").count()), (1, 1));
        for elsewhere in ["src=", "http:", "https:", "@import", "url("] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
    }
}
