use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextSize};
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Kernel, Kernels};

/// # What it does
/// For Ascend: advises on what Triton-Ascend does not compile in kernels: `while`, `break`, `continue`, an early `return`,
/// lambdas, chained boolean operators, float64 and fp8, `tl.inline_asm_elementwise`, CUDA's `libdevice`,
/// `tl.dot_scaled` and tensor descriptors.
///
/// # Why is this bad?
/// The kernel does not compile for the NPU.
///
/// # Example
/// ```python
/// while k < n: ...
/// ```
///
/// # Use instead
/// `for k in range(0, n, BLOCK)` with masks; `tl.math` functions; one comparison after another.
pub(crate) const RULE: Rule =
    Rule { id: "ascend-kernel", tier: Tier::Advice, help: "use for loops, masks, fp32 and the functions of tl.math" };

const FUNCTIONS: [(&str, &str); 5] = [
    ("inline_asm_elementwise", "inline assembly is CUDA's"),
    ("extra.cuda", "`libdevice` is CUDA's"),
    ("extra.libdevice", "`libdevice` is CUDA's"),
    ("dot_scaled", "`tl.dot_scaled` is not supported"),
    ("make_tensor_descriptor", "tensor descriptors are not supported"),
];

const TYPES: [&str; 6] = ["float64", "float8e4nv", "float8e5", "float8e4b8", "float8e5b16", "float8e4b15"];

pub(super) fn check<'a>(kernels: &mut Kernels<'_, 'a>, kernel: &Kernel<'a>) {
    for call in &kernel.calls {
        if let Some((_, what)) = FUNCTIONS.iter().find(|(name, _)| call.name.starts_with(name)) {
            kernels.report(&RULE, call.call.start(), *what);
        }
    }
    let mut body = Body::default();
    body.visit_body(&kernel.def.body);
    let last = kernel.def.body.last().map_or(TextSize::new(0), Ranged::start);
    for (at, what) in body.found {
        // A helper ends with a `return`.
        if what != RETURN || at != last {
            kernels.report(&RULE, at, format!("{what} is not supported in kernels for the NPU"));
        }
    }
    for expr in body.attributes {
        let kind = |name: &&&str| kernels.names.is(expr, kernel.scope, &[&format!("triton.language.{name}")]);
        if let Some(name) = TYPES.iter().find(kind) {
            kernels.report(&RULE, expr.start(), format!("`tl.{name}` is not supported on the NPU"));
        }
    }
}

const RETURN: &str = "an early `return`";

#[derive(Default)]
struct Body<'a> {
    found: Vec<(TextSize, &'static str)>,
    attributes: Vec<&'a Expr>,
}

impl<'a> Visitor<'a> for Body<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let what = match stmt {
            Stmt::While(_) => "`while`",
            Stmt::Break(_) => "`break`",
            Stmt::Continue(_) => "`continue`",
            Stmt::Return(_) => RETURN,
            _ => return walk_stmt(self, stmt),
        };
        self.found.push((stmt.start(), what));
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Lambda(_) => self.found.push((expr.start(), "a lambda")),
            Expr::BoolOp(chain) if chain.values.len() > 2 => {
                self.found.push((expr.start(), "a chain of boolean operators"));
            }
            Expr::Attribute(attribute) if attribute.attr.starts_with("float") => self.attributes.push(expr),
            Expr::Name(name) if name.id.starts_with("float") => self.attributes.push(expr),
            _ => {}
        }
        walk_expr(self, expr);
    }
}
