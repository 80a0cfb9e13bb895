//! Arguments of one launch as Triton specialises them.

use std::collections::BTreeMap;

use tilewright_contract::{Arg, Constexpr, Distribution, Dtype, KernelSpec, LaunchOptions, Number, Param};
use tilewright_screen::{Decorator, Kernel, Parameter};

/// Triton compiles apart for integers and addresses that are multiples of this.
const DIVISIBILITY: i64 = 16;

/// What is passed for a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    Tensor(GivenTensor),
    /// A number, or for a `tl.constexpr` anything that can be one. `ty`: Triton's type for a number, if it is not the
    /// one that Triton takes by itself.
    Value {
        value: Constexpr,
        ty: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct GivenTensor {
    pub dtype: Dtype,
    /// Contiguous.
    pub shape: Vec<u64>,
    pub fill: Fill,
}

/// A tensor's contents before the launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    /// Nothing has written it, as `torch.empty`.
    Unwritten,
    Value(Number),
    /// `start + i * step` in row-major order.
    Count {
        start: Number,
        step: Number,
    },
    Random(Distribution),
    /// Elements of another dtype in row-major order, to be converted.
    Bytes {
        dtype: Dtype,
        bytes: Vec<u8>,
    },
}

/// Arguments that do not fit a kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    #[error("{kernel} has no parameter {name}; it takes {}", .known.join(", "))]
    Unknown { kernel: String, name: String, known: Vec<String> },
    #[error("{name} is given twice")]
    Twice { name: String },
    #[error("{kernel} needs {}", .missing.join(", "))]
    Missing { kernel: String, missing: Vec<String> },
    #[error("{name} is a tl.constexpr and takes a value, not a tensor")]
    TensorForConstexpr { name: String },
    #[error("{name} is no tl.constexpr of {kernel} and takes a tensor or a number, not {value}")]
    NoNumber { kernel: String, name: String, value: String },
    #[error("{name}={value} does not fit {ty}")]
    Unfit { name: String, value: String, ty: String },
}

/// A kernel with everything that a launch passes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub(crate) spec: KernelSpec,
    pub(crate) args: Vec<Arg>,
    /// By buffer: the parameter and what is passed for it.
    pub(crate) tensors: Vec<(String, GivenTensor)>,
}

/// Binds arguments to a kernel's parameters. What is not given comes from the first autotune configuration, or from the
/// parameter's default; warps and stages from the configuration.
pub fn bind(
    kernel: &Kernel,
    given: &[(String, Given)],
    num_warps: Option<u32>,
    num_stages: Option<u32>,
) -> Result<Bound, BindError> {
    let mut by_name = BTreeMap::new();
    for (name, value) in given {
        if !kernel.params.iter().any(|param| param.name == *name) {
            let known = kernel.params.iter().map(|param| param.name.clone()).collect();
            return Err(BindError::Unknown { kernel: kernel.name.clone(), name: name.clone(), known });
        }
        if by_name.insert(name.as_str(), value.clone()).is_some() {
            return Err(BindError::Twice { name: name.clone() });
        }
    }
    let missing: Vec<String> = kernel
        .params
        .iter()
        .filter(|param| !by_name.contains_key(param.name.as_str()) && constant(kernel, param).is_none())
        .map(|param| wanted(kernel, param))
        .collect();
    if !missing.is_empty() {
        return Err(BindError::Missing { kernel: kernel.name.clone(), missing });
    }
    let config = kernel.config.clone().unwrap_or_default();
    let standard = LaunchOptions::default();
    let mut binder = Binder {
        kernel,
        bound: Bound {
            spec: KernelSpec {
                function: kernel.name.clone(),
                params: Vec::new(),
                constexprs: BTreeMap::new(),
                attrs: BTreeMap::new(),
                options: LaunchOptions {
                    num_warps: num_warps.or(config.num_warps).unwrap_or(standard.num_warps),
                    num_stages: num_stages.or(config.num_stages).unwrap_or(standard.num_stages),
                    ..standard
                },
            },
            args: Vec::new(),
            tensors: Vec::new(),
        },
    };
    for param in &kernel.params {
        let given = by_name.remove(param.name.as_str()).or_else(|| constant(kernel, param));
        if let Some(given) = given {
            binder.add(param, given)?;
        }
    }
    Ok(binder.bound)
}

/// What the file itself says of a parameter's value.
fn constant(kernel: &Kernel, param: &Parameter) -> Option<Given> {
    let tuned = kernel.config.iter().flat_map(|config| &config.constants).find(|(name, _)| *name == param.name);
    let value = tuned.map(|(_, value)| value).or(param.default.as_ref())?;
    Some(Given::Value { value: value.clone(), ty: None })
}

/// An integer that the file gives a parameter.
pub fn integer(kernel: &Kernel, name: &str) -> Option<i64> {
    let param = kernel.params.iter().find(|param| param.name == name)?;
    match constant(kernel, param)? {
        Given::Value { value: Constexpr::Number { value: Number::Int(value) }, .. } => Some(value),
        _ => None,
    }
}

/// How to give a parameter that is missing.
fn wanted(kernel: &Kernel, param: &Parameter) -> String {
    let name = &param.name;
    if !param.constexpr {
        return format!("{name}=TENSOR or NUMBER");
    }
    let set = |decorator| kernel.decorators.contains(&decorator);
    if set(Decorator::Heuristics) || set(Decorator::Autotune) {
        return format!("{name}=VALUE (tl.constexpr, computed by a decorator that is not run here)");
    }
    format!("{name}=VALUE (tl.constexpr)")
}

struct Binder<'a> {
    kernel: &'a Kernel,
    bound: Bound,
}

impl Binder<'_> {
    fn add(&mut self, param: &Parameter, given: Given) -> Result<(), BindError> {
        let name = param.name.clone();
        match given {
            Given::Tensor(_) if param.constexpr => return Err(BindError::TensorForConstexpr { name }),
            Given::Tensor(tensor) => {
                self.divisible();
                self.push(&name, tilewright_replay::pointer_type(tensor.dtype));
                let buffer = self.bound.tensors.len();
                self.bound.args.push(Arg::Pointer { buffer, offset: 0 });
                self.bound.tensors.push((name, tensor));
            }
            Given::Value { value, .. } if param.constexpr => self.constexpr(&name, value),
            Given::Value { value: Constexpr::None, .. } => self.constexpr(&name, Constexpr::None),
            Given::Value { value: Constexpr::Number { value }, ty } => {
                let annotated = param.ty.clone();
                self.number(name, value, ty, annotated)?;
            }
            Given::Value { value, .. } => {
                let value = match value {
                    Constexpr::Integer { value } => format!("{value}, which does not fit 64 bits"),
                    Constexpr::Str { value } => format!("the text {value:?}"),
                    Constexpr::Dtype { value } => format!("the type {value}"),
                    _ => "a tuple or function".into(),
                };
                return Err(BindError::NoNumber { kernel: self.kernel.name.clone(), name, value });
            }
        }
        Ok(())
    }

    /// An explicit type stands for itself, an annotated one too, but its value is looked at.
    fn number(
        &mut self,
        name: String,
        value: Number,
        ty: Option<String>,
        annotated: Option<String>,
    ) -> Result<(), BindError> {
        let special = ty.is_none();
        let ty = match ty.or(annotated) {
            Some(ty) => ty,
            None => match value {
                Number::Bool(_) => "u1".to_owned(),
                Number::Float(_) => "fp32".to_owned(),
                Number::Int(value) if i32::try_from(value).is_ok() => "i32".to_owned(),
                Number::Int(_) => "i64".to_owned(),
                Number::Unsigned(_) => "u64".to_owned(),
            },
        };
        let float = ty.starts_with("fp") || ty.starts_with("bf");
        let unfit = || BindError::Unfit { name: name.clone(), value: value.to_string(), ty: ty.clone() };
        let value = match value {
            Number::Int(_) | Number::Unsigned(_) if float => Number::Float(value.as_f64()),
            value if float => value,
            Number::Unsigned(_) if ty == "u64" => value,
            Number::Unsigned(_) => return Err(unfit()),
            value => Number::Int(value.as_i64().filter(|&value| fits(value, &ty)).ok_or_else(unfit)?),
        };
        match value {
            Number::Int(1) if special && ty != "u1" => {
                self.constexpr(&name, Constexpr::Number { value });
                return Ok(());
            }
            Number::Int(number) if special && ty != "u1" && number % DIVISIBILITY == 0 => self.divisible(),
            Number::Unsigned(number) if special && number % DIVISIBILITY as u64 == 0 => self.divisible(),
            _ => {}
        }
        self.push(&name, ty);
        self.bound.args.push(Arg::Scalar { value });
        Ok(())
    }

    fn constexpr(&mut self, name: &str, value: Constexpr) {
        self.bound.spec.constexprs.insert(self.bound.spec.params.len().to_string(), value);
        self.push(name, "constexpr".into());
    }

    /// The next parameter is a multiple of 16.
    fn divisible(&mut self) {
        let at = self.bound.spec.params.len().to_string();
        self.bound.spec.attrs.insert(at, vec![("tt.divisibility".into(), DIVISIBILITY)]);
    }

    fn push(&mut self, name: &str, ty: String) {
        self.bound.spec.params.push(Param { name: name.to_owned(), ty });
    }
}

/// Whether an integer lies in the range of a type.
fn fits(value: i64, ty: &str) -> bool {
    let (low, high) = match ty {
        "i1" | "u1" => (0, 1),
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "u8" => (0, u8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" => (0, i64::MAX),
        _ => (i64::MIN, i64::MAX),
    };
    (low..=high).contains(&value)
}
