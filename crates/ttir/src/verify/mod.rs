pub(crate) mod rules;
pub(crate) type Rule = fn();
