use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Operator, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextSize};
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::Kernels;
use crate::scope::ScopeId;

/// # What it does
/// For Ascend: advises on what the Triton-only check of its kernel generation pipelines refuses in `forward`: Python loops,
/// more than one launch, `@`, `torch.nn.functional`, functions of torch that do not allocate, methods of tensors that
/// compute, calls of submodules, `.append`.
///
/// # Why is this bad?
/// Those pipelines give no reward to such a file, whatever it computes.
///
/// # Example
/// ```python
/// def forward(self, x):
///     partial[grid](x, parts)
///     total[(1,)](parts, out)
/// ```
///
/// # Use instead
/// One launch from `forward`; wrappers at module level; everything else in the kernel.
pub(crate) const RULE: Rule = Rule {
    id: "ascend-forward",
    tier: Tier::Advice,
    help: "launch one kernel from forward, and do everything else in it or before it",
};

/// Functions of torch that the check lets pass.
const ALLOCATING: &str = " empty empty_like empty_strided zeros zeros_like ones ones_like full full_like tensor arange \
    linspace as_tensor ";

/// Methods of tensors that it refuses.
const COMPUTING: &str = " sum mean max min softmax log_softmax matmul mm bmm addmm add sub mul div relu sigmoid tanh gelu \
    silu elu leaky_relu exp log log2 log10 sqrt pow abs norm layer_norm batch_norm group_norm conv1d conv2d conv3d \
    conv_transpose2d linear dropout softplus hardtanh hardswish append ";

pub(super) fn check(kernels: &mut Kernels<'_, '_>, forward: &StmtFunctionDef) {
    let scope = kernels.scopes.opened_by(forward.range());
    let mut body = Body { kernels, scope, launches: 0, found: Vec::new() };
    body.visit_body(&forward.body);
    let found = body.found;
    for (at, what) in found {
        kernels.report(&RULE, at, what);
    }
}

struct Body<'k, 's, 'a> {
    kernels: &'k Kernels<'s, 'a>,
    scope: ScopeId,
    launches: usize,
    found: Vec<(TextSize, String)>,
}

impl Body<'_, '_, '_> {
    fn call(&mut self, function: &Expr) -> Option<String> {
        if function.is_subscript_expr() {
            self.launches += 1;
            return (self.launches > 1).then(|| "`forward` launches more than one kernel".to_owned());
        }
        let paths = self.kernels.names.paths(function, self.scope);
        for path in paths.iter() {
            let Some(name) = path.strip_prefix("torch.") else { continue };
            if !ALLOCATING.contains(&format!(" {name} ")) {
                return Some(format!("`{path}` is called in `forward`"));
            }
        }
        let Expr::Attribute(method) = function else { return None };
        let own = method.value.as_name_expr().is_some_and(|name| &*name.id == "self");
        let computing = COMPUTING.contains(&format!(" {} ", method.attr));
        match own {
            true if &*method.attr != "forward" => Some(format!("`self.{}` is called in `forward`", method.attr)),
            false if computing && paths.is_empty() => Some(format!("`.{}` is called in `forward`", method.attr)),
            _ => None,
        }
    }
}

impl<'e> Visitor<'e> for Body<'_, '_, '_> {
    fn visit_stmt(&mut self, stmt: &'e Stmt) {
        if matches!(stmt, Stmt::For(_) | Stmt::While(_)) {
            self.found.push((stmt.start(), "`forward` has a Python loop".to_owned()));
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'e Expr) {
        let what = match expr {
            Expr::Call(call) => self.call(&call.func),
            Expr::BinOp(product) if product.op == Operator::MatMult => Some("`@` computes in `forward`".to_owned()),
            _ => None,
        };
        if let Some(what) = what {
            self.found.push((expr.start(), what));
        }
        walk_expr(self, expr);
    }
}
