//! Python functions without their insides.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A function that can be called and bound, but not looked into: a traced file that gets hold of one of the tracer's
/// functions could otherwise follow its globals and its closure to the tracer itself.
#[pyclass(frozen, name = "builtin_function", module = "builtins")]
pub(crate) struct Sealed {
    function: Py<PyAny>,
    bound: Option<Py<PyAny>>,
    name: String,
}

#[pymethods]
impl Sealed {
    /// Seals `function` under the name that it shows.
    #[new]
    fn new(function: Py<PyAny>, name: String) -> Self {
        Self { function, bound: None, name }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = self.function.bind(py);
        match &self.bound {
            None => function.call(args, kwargs),
            Some(this) => {
                let all = std::iter::once(this.bind(py).clone()).chain(args.iter());
                function.call(PyTuple::new(py, all.collect::<Vec<_>>())?, kwargs)
            }
        }
    }

    /// As a method: bound to `instance`.
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        instance: Option<&Bound<'py, PyAny>>,
        _owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let this = slf.get();
        let (Some(instance), None) = (instance, &this.bound) else { return Ok(slf.clone()) };
        let py = slf.py();
        let bound = Self {
            function: this.function.clone_ref(py),
            bound: Some(instance.clone().unbind()),
            name: this.name.clone(),
        };
        Bound::new(py, bound)
    }

    #[getter(__name__)]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter(__qualname__)]
    fn qualname(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("<built-in function {}>", self.name)
    }
}
