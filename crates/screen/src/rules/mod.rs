use ruff_python_ast::ModModule;
pub(crate) fn check<'a>(
    _: &'a ModModule,
    _: &crate::source::Source,
    _: &crate::scope::Scopes<'a>,
    _: &crate::names::Names<'_, 'a>,
    _: &crate::cut::Discovered<'a>,
) -> Vec<tilewright_contract::Finding> {
    Vec::new()
}
