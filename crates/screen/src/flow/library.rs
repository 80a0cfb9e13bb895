//! What calls into libraries do: tables that agree with the tracer's (`trace_ops.py`).

use std::sync::OnceLock;

use rustc_hash::FxHashSet;

use super::value::Effect;

/// What calling something gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gives {
    /// Nothing with tensors or code in it.
    Plain,
    /// New memory.
    Memory,
    /// The tensors that it was given, looked at or moved.
    Moved,
    /// What torch computed.
    Computed,
    /// An object, known by where it is from: `path()`.
    Instance,
    /// One or all of its arguments, or of their elements.
    Arguments,
    Unknown,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) effect: Effect,
    pub(super) gives: Gives,
    /// Whether the answer may depend on more than the signature.
    pub(super) open: bool,
    /// Whether functions among the arguments may be called by it.
    pub(super) calls: bool,
}

impl Call {
    const fn clear(gives: Gives) -> Self {
        Self { effect: Effect::Clear, gives, open: false, calls: false }
    }

    const fn open(gives: Gives) -> Self {
        Self { effect: Effect::Clear, gives, open: true, calls: false }
    }

    const fn calling(self) -> Self {
        Self { calls: true, ..self }
    }
}

pub(super) const COMPUTES: Call = Call { effect: Effect::Compute, gives: Gives::Computed, open: false, calls: true };
pub(super) const NOBODY_KNOWS: Call = Call { effect: Effect::Unknown, gives: Gives::Unknown, open: true, calls: true };

/// Words, to be looked up.
struct Words {
    text: &'static str,
    set: OnceLock<FxHashSet<&'static str>>,
}

impl Words {
    const fn new(text: &'static str) -> Self {
        Self { text, set: OnceLock::new() }
    }

    fn has(&self, word: &str) -> bool {
        self.set.get_or_init(|| self.text.split_ascii_whitespace().collect()).contains(word)
    }
}

/// Whether a word is in a short text of words.
fn among(word: &str, words: &str) -> bool {
    words.split_ascii_whitespace().any(|known| known == word)
}

/// Functions of `torch` that make memory without looking at any.
static ALLOCATING: Words = Words::new(
    "arange as_tensor asarray empty empty_like empty_permuted empty_quantized empty_strided eye \
    frombuffer from_numpy full full_like linspace normal ones ones_like rand rand_like randint randint_like randn \
    randn_like randperm scalar_tensor tensor zeros zeros_like",
);
/// Functions of `torch` that view, copy or cast.
static MOVING: Words = Words::new(
    "adjoint as_strided atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to cat chunk \
    clone column_stack concat concatenate detach diagonal dsplit dstack expand_copy flatten hsplit hstack moveaxis \
    movedim narrow permute ravel reshape resolve_conj resolve_neg row_stack select split squeeze stack swapaxes \
    swapdims t tensor_split tile to transpose unbind unflatten unsqueeze unsafe_chunk unsafe_split view_as_complex \
    view_as_real view_copy vsplit vstack",
);
/// Functions of `torch` that ask, or set what says nothing about data.
static ASKING: Words = Words::new(
    "autocast broadcast_shapes can_cast device dtype enable_grad finfo \
    get_device get_device_module iinfo inference_mode is_complex is_conj is_floating_point \
    is_grad_enabled is_neg is_same_size is_signed is_tensor layout memory_format no_grad numel promote_types result_type set_default_device set_default_dtype \
    set_float32_matmul_precision set_grad_enabled strided",
);
/// Functions of `torch` that ask what a trace may answer differently.
static ASKING_OPEN: Words = Words::new(
    "are_deterministic_algorithms_enabled get_autocast_dtype get_autocast_gpu_dtype get_default_device get_default_dtype \
    get_float32_matmul_precision get_num_interop_threads get_num_threads initial_seed is_autocast_cache_enabled \
    is_autocast_cpu_enabled is_autocast_enabled is_deterministic_algorithms_warn_only_enabled is_distributed \
    is_inference is_inference_mode_enabled is_storage is_warn_always_enabled manual_seed seed typename",
);

/// Methods of tensors that view, copy, cast or fill.
static METHODS_MOVING: Words = Words::new(
    "adjoint alias apply_to as_strided as_strided_ bfloat16 bool broadcast_to byte chunk clone \
    contiguous copy_ cpu cuda detach detach_ diagonal double dsplit expand expand_as fill_ flatten float half hsplit int \
    long moveaxis movedim narrow new_tensor permute ravel repeat requires_grad_ reshape reshape_as resize_ resize_as_ \
    resolve_conj resolve_neg select set_ short split split_with_sizes squeeze squeeze_ swapaxes swapaxes_ swapdims \
    swapdims_ t t_ tensor_split tile to to_ transpose transpose_ type type_as unbind unflatten unfold unsqueeze \
    unsqueeze_ view view_as view_as_complex view_as_real vsplit zero_ retain_grad pin_memory record_stream \
    bernoulli_ normal_ uniform_ random_ rename rename_ share_memory_",
);
static METHODS_ALLOCATING: Words = Words::new("new_empty new_empty_strided new_full new_ones new_zeros");
/// Methods of tensors that ask for what the signature holds.
static METHODS_ASKING: Words = Words::new(
    "dim element_size is_complex is_contiguous is_conj is_floating_point is_neg \
    is_signed ndimension nelement numel size storage_offset stride dim_order is_same_size",
);
/// Methods of tensors that ask for what a trace may answer differently.
static METHODS_OPEN: Words = Words::new(
    "data_ptr get_device is_inference is_pinned is_set_to is_shared untyped_storage storage typed_storage has_names \
    register_hook __repr__ __str__ __format__ __hash__ __class__ __dir__ __sizeof__ __reduce__ __reduce_ex__",
);

/// Calling a method of a tensor.
pub(super) fn method_of_tensor(name: &str) -> Call {
    if METHODS_MOVING.has(name) {
        Call::clear(Gives::Moved)
    } else if METHODS_ASKING.has(name) {
        Call::clear(Gives::Plain)
    } else if METHODS_ALLOCATING.has(name) {
        Call::clear(Gives::Memory)
    } else if METHODS_OPEN.has(name) {
        Call::open(Gives::Plain).calling()
    } else {
        COMPUTES
    }
}

/// Attributes of tensors that the signature settles, apart from the views among them.
static ATTRIBUTES: Words = Words::new(
    "dtype is_cpu is_cuda is_meta is_mkldnn is_nested is_quantized is_sparse \
    is_xpu is_mps itemsize layout nbytes ndim shape",
);
static ATTRIBUTES_VIEWS: Words = Words::new("H T data grad imag mH mT real");

/// What an attribute of a tensor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribute {
    Settled,
    View,
    /// `device`: its type is settled, its index is not.
    Device,
    /// Settled for the module's own tensors, not for those that `forward` is given.
    Gradient,
    /// Callable, or what only a real tensor or only a fake one has.
    Method,
}

pub(super) fn attribute_of_tensor(name: &str) -> Attribute {
    if ATTRIBUTES.has(name) {
        Attribute::Settled
    } else if ATTRIBUTES_VIEWS.has(name) {
        Attribute::View
    } else if name == "device" {
        Attribute::Device
    } else if among(name, "requires_grad is_leaf") {
        Attribute::Gradient
    } else {
        Attribute::Method
    }
}

/// Parts of `torch.cuda` that answer nothing, or the same wherever there is a device. What kind of device, which of
/// several and which stream differs from user to user.
static CUDA: Words =
    Words::new("is_available is_initialized device device_of stream synchronize Stream init set_device");

/// Attributes of torch's layers that are numbers.
static LAYER_NUMBERS: Words = Words::new(
    "affine bidirectional batch_first channels dilation dim dims dropout elementwise_affine \
    embed_dim embedding_dim eps groups head_dim hidden_size in_channels in_features inplace input_size kernel_size \
    momentum negative_slope normalized_shape num_channels num_embeddings num_features num_groups num_heads num_layers \
    out_channels out_features output_padding p padding padding_idx padding_mode stride track_running_stats training \
    T_destination __class__ __name__",
);
/// Methods of `torch.nn.Module` that do no arithmetic.
static MODULE_METHODS: Words = Words::new(
    "__init__ add_module append bfloat16 bool buffers children cpu cuda double eval extend \
    extra_repr float get_buffer get_parameter get_submodule half insert load_state_dict modules named_buffers \
    named_children named_modules named_parameters parameters register_buffer register_module register_parameter \
    requires_grad_ reset_parameters state_dict to train type zero_grad items keys values",
);
/// Layers of torch that hand on what they get.
static IDLE_LAYERS: Words = Words::new("torch.nn.Flatten() torch.nn.Identity() torch.nn.Unflatten()");

/// Builtins that neither compute nor call anything.
static BUILTINS_PLAIN: Words = Words::new(
    "ascii bin bytes callable chr delattr format hash hasattr hex id input issubclass oct ord \
    print repr str type int bool float complex round abs pow divmod len isinstance range slice any all",
);
static BUILTINS_ARGUMENTS: Words = Words::new(
    "dict enumerate frozenset iter list next reversed set sorted tuple zip min max sum filter map vars object",
);
/// Builtins that do arithmetic on what they are given, or ask it for its truth.
static BUILTINS_ARITHMETIC: Words =
    Words::new("abs all any bool complex divmod float int max min pow round sorted sum");

/// Whether a builtin does arithmetic on its arguments, or on their elements.
pub(super) fn is_arithmetic(path: &str) -> bool {
    match path.split_once('.') {
        Some(("builtins", name)) => BUILTINS_ARITHMETIC.has(name),
        Some(("operator", name)) => !matches!(
            name.trim_matches('_'),
            "is" | "is_not" | "getitem" | "setitem" | "delitem" | "length_hint" | "call"
        ),
        Some(("math", _)) => true,
        _ => false,
    }
}

/// Calling something imported or built in, by its dotted path.
pub(super) fn call(path: &str) -> Call {
    use Gives::{Arguments, Computed, Instance, Memory, Moved, Plain, Unknown};
    if let Some(of) = path.rfind("().") {
        return method(&path[..of + 2], &path[of + 3..]);
    }
    if path.ends_with("()") {
        return called_instance(path);
    }
    let (root, rest) = path.split_once('.').unwrap_or((path, ""));
    match root {
        "torch" => return torch(path, rest),
        "triton" => {
            let open = rest.starts_with("testing") || is_open_value(path);
            return Call { open, ..Call::clear(Instance).calling() };
        }
        "builtins" => {}
        "math" | "numbers" => return Call::clear(Plain),
        "contextlib" if !matches!(rest, "contextmanager" | "nullcontext") => return Call::clear(Instance),
        "importlib" if rest == "util.find_spec" => return Call::clear(Plain),
        "importlib" if rest == "metadata.version" => return Call::open(Plain),
        "packaging" => return Call::clear(Instance),
        "typing" | "dataclasses" | "enum" | "abc" | "__future__" | "copy" | "collections" | "contextlib" | "types"
        | "string" | "typing_extensions" => return Call::clear(Arguments),
        "functools" if rest != "cmp_to_key" => return Call::clear(Arguments),
        "functools" | "itertools" => return Call::clear(Arguments).calling(),
        "operator" => return Call { gives: Unknown, ..Call::clear(Plain) }.calling(),
        "warnings" | "logging" | "time" | "random" | "datetime" | "secrets" | "uuid" | "platform" => {
            return Call::open(Instance);
        }
        _ => return NOBODY_KNOWS,
    }
    let first = rest.split('.').next().unwrap_or(rest);
    match first {
        "id" | "repr" | "hash" | "format" | "str" | "ascii" | "type" | "hasattr" | "input" => Call::open(Plain),
        _ if BUILTINS_PLAIN.has(first) => Call::clear(Plain),
        "next" => Call::open(Arguments),
        "map" | "filter" | "sorted" | "min" | "max" => Call::clear(Arguments).calling(),
        _ if BUILTINS_ARGUMENTS.has(first) => Call::clear(Arguments),
        "property" | "staticmethod" | "classmethod" => Call::clear(Arguments),
        _ if is_exception(first) => Call::clear(Plain),
        "Memory" => Call::clear(if rest.is_empty() { Memory } else { Moved }),
        "Computed" => Call::clear(Computed),
        _ => NOBODY_KNOWS,
    }
}

/// What else the file need not bind.
static BUILTINS_OTHER: Words = Words::new(
    "property staticmethod classmethod super getattr setattr globals locals eval exec compile open __import__ \
            breakpoint memoryview bytearray dir aiter anext exit quit KeyboardInterrupt SystemExit GeneratorExit \
            Ellipsis NotImplemented __name__ __file__ __doc__ __debug__ __builtins__ __loader__ __spec__ __package__",
);

fn is_exception(name: &str) -> bool {
    name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Warning") || name == "StopIteration"
}

/// Whether the file need not bind `name` for it to mean something.
pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS_PLAIN.has(name) || BUILTINS_ARGUMENTS.has(name) || is_exception(name) || BUILTINS_OTHER.has(name)
}

fn torch(path: &str, rest: &str) -> Call {
    use Gives::{Instance, Memory, Moved, Plain, Unknown};
    let last = rest.rsplit('.').next().unwrap_or(rest);
    if !rest.contains('.') {
        return if ALLOCATING.has(rest) {
            Call::clear(Memory)
        } else if MOVING.has(rest) {
            Call::clear(Moved)
        } else if ASKING.has(rest) {
            Call::clear(Instance)
        } else if ASKING_OPEN.has(rest) {
            Call::open(Plain)
        } else if rest == "compile" {
            COMPUTES
        } else if rest.ends_with("Tensor") {
            Call::clear(Memory)
        } else if rest.starts_with(|c: char| c.is_ascii_uppercase()) {
            Call::clear(Instance)
        } else {
            COMPUTES
        };
    }
    let space = &rest[..rest.len() - last.len() - 1];
    match space {
        "Tensor"
        | "_C.TensorBase"
        | "_C._TensorBase"
        | "nn.Parameter"
        | "nn.parameter.Parameter"
        | "_tensor.Tensor" => method_of_tensor(last),
        _ if space.ends_with("Tensor") => method_of_tensor(last),
        "jit" | "compiler" | "onnx" | "_dynamo" if last.starts_with("is_") => Call::open(Plain),
        "jit" | "compiler" | "_dynamo" if among(last, "disable ignore unused export allow_in_graph graph_break") => {
            Call::clear(Gives::Arguments)
        }
        "cuda" if CUDA.has(last) => Call::clear(Instance),
        "nn.functional" if last == "pad" => Call::clear(Moved),
        "nn" | "nn.parameter" if matches!(last, "Parameter" | "Buffer") => Call::clear(Moved),
        "_C._nn" | "_C._VariableFunctions" | "_VF" => torch_function(last),
        _ => {
            let head = space.split('.').next().unwrap_or(space);
            match head {
                "ops" => torch_op(path, last),
                "nn" if last.starts_with(|c: char| c.is_ascii_uppercase()) => Call::clear(Instance),
                "nn" if space == "nn.init" => Call::clear(Moved),
                "special" | "linalg" | "fft" | "sparse" | "nested" | "nn" | "jit" | "fx" | "export" | "func" => {
                    COMPUTES
                }
                "autograd" if matches!(last, "grad" | "backward" | "jacobian" | "hessian") => COMPUTES,
                "autograd" | "library" | "amp" | "version" | "backends" | "distributions" if !is_open_value(path) => {
                    Call::clear(Instance)
                }
                "autograd" | "library" | "amp" | "version" | "backends" => Call::open(Instance),
                "cuda" | "random" | "cpu" | "mps" | "xpu" | "accelerator" | "profiler" => Call::open(Instance),
                "utils" if last.starts_with("checkpoint") => Call::clear(Unknown).calling(),
                "Size" | "device" | "dtype" => Call::clear(Plain),
                _ => NOBODY_KNOWS,
            }
        }
    }
}

/// The functions of `torch` under another name.
fn torch_function(name: &str) -> Call {
    torch(name, name)
}

/// `torch.ops.aten.add`, `torch.ops.aten.add.Tensor`
fn torch_op(path: &str, last: &str) -> Call {
    let Some(op) = path.strip_prefix("torch.ops.aten.").or_else(|| path.strip_prefix("torch.ops.prims.")) else {
        return NOBODY_KNOWS;
    };
    let name = op.split('.').next().unwrap_or(last);
    if among(name, "_to_copy _unsafe_view _reshape_alias constant_pad_nd copy lift_fresh fill zero") {
        return Call::clear(Gives::Moved);
    }
    let method = method_of_tensor(name);
    if method.effect == Effect::Clear { method } else { torch_function(name) }
}

/// Calling a method of what a library's call gave.
fn method(object: &str, name: &str) -> Call {
    if object.contains("torch.nn.") || object.contains("torch.optim") {
        if name.ends_with("_hook") {
            return Call::clear(Gives::Instance).calling();
        }
        return if MODULE_METHODS.has(name) { Call::clear(Gives::Instance) } else { COMPUTES };
    }
    if object.starts_with("torch.cuda.Event") || object.starts_with("time.") {
        return Call::open(Gives::Plain);
    }
    match object.split('.').next().unwrap_or(object) {
        "triton" => Call::clear(Gives::Instance),
        "torch" => {
            let known = object.starts_with("torch.cuda.")
                || object.starts_with("torch.autograd.")
                || object.starts_with("torch.library.")
                || among(object, "torch.no_grad() torch.device() torch.Size() torch.Generator() torch.autocast()");
            if known { Call::clear(Gives::Instance) } else { NOBODY_KNOWS }
        }
        "warnings" | "logging" | "time" | "random" => Call::open(Gives::Instance),
        "contextlib" | "collections" | "functools" | "itertools" | "dataclasses" | "builtins" => {
            Call::clear(Gives::Arguments).calling()
        }
        _ => NOBODY_KNOWS,
    }
}

/// Calling what a library's call gave.
fn called_instance(path: &str) -> Call {
    if IDLE_LAYERS.has(path) {
        return Call::clear(Gives::Moved);
    }
    if path.starts_with("torch.nn.") {
        return COMPUTES;
    }
    // Decorators with arguments hand on the function.
    if path.starts_with("triton.")
        || path.starts_with("torch.")
        || path.starts_with("functools.")
        || path.starts_with("dataclasses.")
    {
        return Call::clear(Gives::Arguments);
    }
    NOBODY_KNOWS
}

/// An attribute of one of torch's layers: whether it is a tensor, if it is no method.
pub(super) fn is_layer_tensor(path: &str) -> Option<bool> {
    let of = path.rfind("().")?;
    let (object, name) = (&path[..of], &path[of + 3..]);
    let layer = object.starts_with("torch.nn.") && !object.contains("()") && !name.starts_with('_');
    let known = MODULE_METHODS.has(name) || name.ends_with("_hook") || matches!(name, "forward" | "__call__");
    (layer && !known).then(|| !LAYER_NUMBERS.has(name))
}

/// Whether asking for this thing, without a call, may be answered differently in a trace.
pub(super) fn is_open_value(path: &str) -> bool {
    let (root, rest) = path.split_once('.').unwrap_or((path, ""));
    match root {
        "torch" => {
            let hidden = rest.split('.').any(|part| part.starts_with('_'));
            let device = rest.strip_prefix("device().").is_some_and(|name| name != "type");
            let head = rest.split('.').next().unwrap_or(rest);
            hidden || device || matches!(head, "utils" | "backends") || (head == "version" && rest != "version.hip")
        }
        // Which module this is, and what it is called.
        "builtins" if rest.starts_with("__") => true,
        "triton" if rest.contains("__version__") || rest.contains("driver") => true,
        "sys" => !matches!(rest, "platform" | "maxsize" | "byteorder"),
        "triton" | "math" | "packaging" | "typing" | "functools" | "operator" | "collections" | "builtins"
        | "dataclasses" | "enum" | "itertools" | "contextlib" | "abc" | "numbers" | "types" => false,
        _ => true,
    }
}

static PLAIN_METHODS: Words = Words::new(
    "append as_integer_ratio bit_length capitalize count encode endswith extend find format get index insert \
        is_integer items join keys lower lstrip pop replace rfind rsplit rstrip setdefault sort split splitlines \
        startswith strip title update upper values zfill save_for_backward mark_dirty mark_non_differentiable \
        set_materialize_grads synchronize wait_stream wait_event record_event warn debug info warning",
);

/// Methods of text, numbers and containers that library code may give.
pub(super) fn is_plain_method(name: &str) -> bool {
    PLAIN_METHODS.has(name)
}
