//! A guess at which expressions of host code are tensors, by how they came to be.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::below_any;
use super::checker::Checker;
use crate::scope::{BindingKind, ScopeId};

/// Bounds the work of one guess.
const STEPS: usize = 16;

/// Methods and attributes of a tensor that give something else.
const PLAIN: &str = " shape size stride dim ndim numel nelement element_size itemsize nbytes dtype device layout \
    data_ptr item tolist is_contiguous is_cuda is_cpu requires_grad get_device storage_offset is_leaf is_floating_point \
    is_complex name names grad_fn type __class__ __dict__ is_sparse is_quantized ndimension training is_meta ";

/// Names under `torch` that give no tensor when called.
const NO_TENSOR: [&str; 17] = [
    "torch.cuda",
    "torch.device",
    "torch.dtype",
    "torch.finfo",
    "torch.iinfo",
    "torch.is_tensor",
    "torch.is_grad_enabled",
    "torch.is_floating_point",
    "torch.get_default_dtype",
    "torch.Size",
    "torch.nn",
    "torch.backends",
    "torch.promote_types",
    "torch.result_type",
    "torch.no_grad",
    "torch.enable_grad",
    "torch.library",
];

/// Whether `expr` may well be a tensor.
pub(super) fn may_be_tensor(checker: &Checker<'_, '_>, expr: &Expr, scope: ScopeId) -> bool {
    guess(checker, expr, scope, &mut STEPS.clone())
}

fn guess(checker: &Checker<'_, '_>, expr: &Expr, scope: ScopeId, steps: &mut usize) -> bool {
    if *steps == 0 {
        return false;
    }
    *steps -= 1;
    match expr {
        Expr::Name(name) => {
            let Some((home, bindings)) = checker.scopes.lookup(&name.id, scope) else { return false };
            bindings.iter().any(|binding| match binding.kind {
                BindingKind::Parameter => !checker.is_plain(binding.at),
                BindingKind::Value(value) => guess(checker, value, home, steps),
                _ => false,
            })
        }
        Expr::Attribute(attribute) => match &*attribute.value {
            Expr::Name(name) if &*name.id == "self" => matches!(&*attribute.attr, "weight" | "bias"),
            base => !is_plain(&attribute.attr) && guess(checker, base, scope, steps),
        },
        Expr::Call(call) => gives_tensor(checker, call, scope, steps),
        Expr::Subscript(subscript) => guess(checker, &subscript.value, scope, steps),
        Expr::BinOp(operation) => {
            guess(checker, &operation.left, scope, steps) || guess(checker, &operation.right, scope, steps)
        }
        Expr::UnaryOp(operation) => guess(checker, &operation.operand, scope, steps),
        Expr::If(choice) => guess(checker, &choice.body, scope, steps) || guess(checker, &choice.orelse, scope, steps),
        _ => false,
    }
}

/// A method of a tensor, or a function of torch that is not known to give something else.
fn gives_tensor(checker: &Checker<'_, '_>, call: &ExprCall, scope: ScopeId, steps: &mut usize) -> bool {
    let paths = checker.names.paths(&call.func, scope);
    if paths.iter().any(|path| path.starts_with("torch.") && !below_any(path, &NO_TENSOR)) {
        return true;
    }
    match &*call.func {
        Expr::Attribute(method) => {
            let tensor = !is_plain(&method.attr) && !matches!(&*method.value, Expr::Name(name) if &*name.id == "self");
            tensor && guess(checker, &method.value, scope, steps)
        }
        _ => false,
    }
}

fn is_plain(attr: &str) -> bool {
    PLAIN.contains(&format!(" {attr} "))
}

/// Whether `expr` is a call of the method `data_ptr`.
pub(super) fn is_address(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call)
        if matches!(&*call.func, Expr::Attribute(method) if &*method.attr == "data_ptr") && !call.range().is_empty())
}
