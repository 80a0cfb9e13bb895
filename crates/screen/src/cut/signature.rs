//! What the source says about a kernel's parameters: compile-time ones, types, defaults, and the first configuration of
//! an autotuner.

use ruff_python_ast::{Expr, ExprCall, Number as Literal, StmtFunctionDef, UnaryOp};
use ruff_text_size::Ranged;
use tilewright_contract::{Constexpr, Dtype, Number};

use super::discover::AUTOTUNE;
use crate::names::Names;
use crate::scope::{BindingKind, ScopeId, elements};
use crate::source::Source;

/// Names that lead to a literal, at most.
const STEPS: usize = 8;

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    pub name: String,
    /// Annotated as `tl.constexpr`.
    pub constexpr: bool,
    /// Triton's type where the annotation names one: `i64`, `fp32`.
    pub ty: Option<String>,
    /// The default, where it is a literal.
    pub default: Option<Constexpr>,
}

/// A configuration of `@triton.autotune` that is written in literals.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    pub constants: Vec<(String, Constexpr)>,
    pub num_warps: Option<u32>,
    pub num_stages: Option<u32>,
}

/// Reads literals as the file's names give them.
pub(super) struct Reader<'s, 'n, 'a> {
    pub(super) source: &'s Source,
    pub(super) names: &'s Names<'n, 'a>,
    pub(super) scope: ScopeId,
}

impl Reader<'_, '_, '_> {
    pub(super) fn parameters(&self, def: &StmtFunctionDef) -> Vec<Parameter> {
        let one = |parameter: ruff_python_ast::AnyParameterRef<'_>| {
            let annotation = parameter.annotation();
            // As Triton decides it.
            let constexpr = annotation.is_some_and(|text| self.source.slice(text.range()).contains("constexpr"));
            Parameter {
                name: parameter.name().to_string(),
                constexpr,
                ty: annotation.filter(|_| !constexpr).and_then(|annotation| self.annotated(annotation)),
                default: parameter.default().and_then(|value| self.literal(value, STEPS)),
            }
        };
        def.parameters.iter().map(one).collect()
    }

    /// The first configuration of the outermost autotuner.
    pub(super) fn config(&self, def: &StmtFunctionDef) -> Option<Config> {
        let tuner = def.decorator_list.iter().find_map(|decorator| match &decorator.expression {
            Expr::Call(call) if self.names.is(&call.func, self.scope, AUTOTUNE) => Some(call),
            _ => None,
        })?;
        let configs = self.valued(argument(tuner, 0, "configs")?, STEPS)?;
        let Expr::Call(config) = elements(configs).first()? else { return None };
        let Expr::Dict(kwargs) = argument(config, 0, "kwargs")? else { return None };
        let mut constants = Vec::new();
        for item in &kwargs.items {
            let Constexpr::Str { value: name } = self.literal(item.key.as_ref()?, STEPS)? else { return None };
            constants.push((name, self.literal(&item.value, STEPS)?));
        }
        let count = |at, name| match self.literal(argument(config, at, name)?, STEPS)? {
            Constexpr::Number { value } => value.as_i64().and_then(|count| u32::try_from(count).ok()),
            _ => None,
        };
        Some(Config { constants, num_warps: count(1, "num_warps"), num_stages: count(2, "num_stages") })
    }

    /// The value of a name that is bound once.
    fn valued<'e>(&self, expr: &'e Expr, steps: usize) -> Option<&'e Expr>
    where
        Self: 'e,
    {
        let Expr::Name(name) = expr else { return Some(expr) };
        match self.names.scopes().lookup(&name.id, self.scope)? {
            (_, [binding]) => match binding.kind {
                BindingKind::Value(value) if steps > 0 => self.valued(value, steps - 1),
                _ => None,
            },
            _ => None,
        }
    }

    fn annotated(&self, annotation: &Expr) -> Option<String> {
        if let Expr::StringLiteral(text) = annotation {
            return triton_type(text.value.to_str().rsplit('.').next()?).map(str::to_owned);
        }
        self.dtype(annotation).map(|name| triton_type(&name).unwrap_or(&name).to_owned())
    }

    /// The last part of the name of something in `triton.language` that is a dtype.
    fn dtype(&self, expr: &Expr) -> Option<String> {
        let paths = self.names.paths(expr, self.scope);
        let name = paths.iter().find_map(|path| path.strip_prefix("triton.language."))?;
        triton_type(name).map(|_| name.to_owned())
    }

    fn literal(&self, expr: &Expr, steps: usize) -> Option<Constexpr> {
        let steps = steps.checked_sub(1)?;
        let number = |value| Some(Constexpr::Number { value });
        match self.valued(expr, STEPS).unwrap_or(expr) {
            Expr::NoneLiteral(_) => Some(Constexpr::None),
            Expr::BooleanLiteral(literal) => number(Number::Bool(literal.value)),
            Expr::StringLiteral(literal) => Some(Constexpr::Str { value: literal.value.to_str().to_owned() }),
            Expr::NumberLiteral(literal) => match &literal.value {
                Literal::Int(int) => match (int.as_i64(), int.as_u64()) {
                    (Some(int), _) => number(Number::Int(int)),
                    (None, Some(int)) => number(Number::Unsigned(int)),
                    (None, None) => Some(Constexpr::Integer { value: int.to_string() }),
                },
                Literal::Float(float) => number(Number::Float(*float)),
                Literal::Complex { .. } => None,
            },
            Expr::UnaryOp(negative) if negative.op == UnaryOp::USub => match self.literal(&negative.operand, steps)? {
                Constexpr::Number { value: Number::Int(int) } => number(Number::Int(int.checked_neg()?)),
                Constexpr::Number { value: Number::Float(float) } => number(Number::Float(-float)),
                Constexpr::Number { value: Number::Unsigned(int) } => {
                    let value = -i128::from(int);
                    let long = || Some(Constexpr::Integer { value: value.to_string() });
                    i64::try_from(value).map_or_else(|_| long(), |int| number(Number::Int(int)))
                }
                Constexpr::Integer { value } => {
                    let value = value.strip_prefix('-').map_or_else(|| format!("-{value}"), str::to_owned);
                    Some(Constexpr::Integer { value })
                }
                _ => None,
            },
            tuple @ (Expr::Tuple(_) | Expr::List(_)) => {
                let items = elements(tuple).iter().map(|item| self.literal(item, steps)).collect::<Option<_>>()?;
                Some(Constexpr::Tuple { items })
            }
            Expr::Call(call) if self.names.is(&call.func, self.scope, &["triton.language.constexpr"]) => {
                self.literal(call.arguments.args.first()?, steps)
            }
            other => self.dtype(other).map(|name| Constexpr::Dtype { value: dtype_name(&name).to_owned() }),
        }
    }
}

/// An argument of a call, by place or name.
fn argument<'e>(call: &'e ExprCall, at: usize, name: &str) -> Option<&'e Expr> {
    call.arguments.find_argument_value(name, at)
}

/// Triton's short name of a type of `triton.language`: `int64` -> `i64`.
fn triton_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "float16" => "fp16",
        "bfloat16" => "bf16",
        "float32" => "fp32",
        "float64" => "fp64",
        "float8e4nv" | "fp8e4nv" => "fp8e4nv",
        "float8e5" | "fp8e5" => "fp8e5",
        "int1" | "i1" => "i1",
        other => match Dtype::from_triton(other)? {
            Dtype::Bool => "i1",
            Dtype::U8 => "u8",
            Dtype::U16 => "u16",
            Dtype::U32 => "u32",
            Dtype::U64 => "u64",
            Dtype::I8 => "i8",
            Dtype::I16 => "i16",
            Dtype::I32 => "i32",
            Dtype::I64 => "i64",
            Dtype::F8E4M3 => "fp8e4nv",
            Dtype::F8E5M2 => "fp8e5",
            Dtype::F16 => "fp16",
            Dtype::Bf16 => "bf16",
            Dtype::F32 => "fp32",
            Dtype::F64 => "fp64",
        },
    })
}

/// The name under which Triton makes a dtype: floats by their short names, integers by their long ones.
fn dtype_name(name: &str) -> &str {
    match name {
        "float16" => "fp16",
        "bfloat16" => "bf16",
        "float32" => "fp32",
        "float64" => "fp64",
        "float8e4nv" => "fp8e4nv",
        "float8e5" => "fp8e5",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "import triton\nimport triton.language as tl\nfrom triton import Config\n\nEPS = 1e-5\nCONFIGS = [\n    \
triton.Config({\"BLOCK\": 64, \"T\": tl.float16}, num_warps=8, num_stages=2),\n    Config({\"BLOCK\": 32}),\n]\n\n\n\
@triton.autotune(configs=CONFIGS, key=[\"n\"])\n@triton.jit\ndef k(x, n: tl.int64, eps=EPS, m: \"i32\" = -3, BLOCK: \
tl.constexpr = 1, ACT: \"tl.constexpr\" = \"relu\", T: tl.constexpr = tl.bfloat16, NONE: tl.constexpr = None):\n    \
tl.store(x, n)\n";

    #[test]
    fn parameters_have_their_types_and_defaults() {
        let cut = crate::cut(SOURCE.as_bytes()).unwrap();
        let shown: Vec<String> = cut.kernels[0]
            .params
            .iter()
            .map(|p| format!("{} {} {:?} {:?}", p.name, p.constexpr, p.ty, p.default))
            .collect();
        assert_eq!(
            shown,
            [
                "x false None None",
                "n false Some(\"i64\") None",
                "eps false None Some(Number { value: Float(1e-5) })",
                "m false Some(\"i32\") Some(Number { value: Int(-3) })",
                "BLOCK true None Some(Number { value: Int(1) })",
                "ACT true None Some(Str { value: \"relu\" })",
                "T true None Some(Dtype { value: \"bf16\" })",
                "NONE true None Some(None)",
            ]
        );
    }

    #[test]
    fn the_first_configuration_is_read_through_names() {
        let cut = crate::cut(SOURCE.as_bytes()).unwrap();
        let config = cut.kernels[0].config.clone().unwrap();
        assert_eq!((config.num_warps, config.num_stages), (Some(8), Some(2)));
        assert_eq!(config.constants[0], ("BLOCK".into(), Constexpr::Number { value: Number::Int(64) }));
        assert_eq!(config.constants[1], ("T".into(), Constexpr::Dtype { value: "fp16".into() }));
        let integer = |value: &str| Constexpr::Integer { value: value.into() };
        let number = |value| Constexpr::Number { value };
        for (written, value) in [
            ("9223372036854775807", number(Number::Int(i64::MAX))),
            ("-9223372036854775808", number(Number::Int(i64::MIN))),
            ("9223372036854775808", number(Number::Unsigned(1 << 63))),
            ("0xffff_ffff_ffff_ffff", number(Number::Unsigned(u64::MAX))),
            ("-9223372036854775809", integer("-9223372036854775809")),
            ("18446744073709551616", integer("18446744073709551616")),
            ("--18446744073709551616", integer("18446744073709551616")),
        ] {
            let source = SOURCE.replace("\"BLOCK\": 64", &format!("\"BLOCK\": {written}"));
            let config = crate::cut(source.as_bytes()).unwrap().kernels[0].config.clone().unwrap();
            assert_eq!(config.constants[0].1, value, "{written}");
        }
        let computed = SOURCE.replace("\"BLOCK\": 64", "\"BLOCK\": 2 ** 6");
        assert_eq!(crate::cut(computed.as_bytes()).unwrap().kernels[0].config, None);
    }
}
