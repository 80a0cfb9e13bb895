"""Files that look for the tracer, take it apart, or keep state: each way in several spellings."""

from __future__ import annotations

from typing import Any

import pytest
from tilewright.cell import trace_purity
from trace_bench import forward, module, ops, plan_of, rules, trace


def proofs(plan: dict[str, Any]) -> set[str]:
    return {rule for rule, tier in rules(plan) if tier == "proof"}


# what a fake tensor answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        "type(x) is torch.Tensor and type(x.data) is torch.Tensor",
        "x.__class__ is torch.Tensor and isinstance(x, torch.Tensor)",
        "type(self.w) is nn.Parameter and isinstance(self.w, nn.Parameter) and not isinstance(x, nn.Parameter)",
        "type(type) is type and isinstance(torch.Tensor, type) and type('T', (), {}).__name__ == 'T'",
        "'Fake' not in str(type(x)) + x.__class__.__name__ + repr(x.__class__)",
        "{torch.Tensor: 1}.get(type(x)) == 1",
        "not any('fake' in name for name in (*dir(x), *vars(x)))",
        "x.untyped_storage().device.type == 'cuda' and x.untyped_storage().is_cuda",
        "x.storage().device.type == 'cuda' and x.storage().data_ptr() == x.data_ptr()",
        "x.is_cuda and not x.is_meta and x.device.type == 'cuda' and x.get_device() >= 0",
        "x.names == (None,) and x.layout is torch.strided and x.type() == 'torch.cuda.FloatTensor'",
        "x._base is None and x.grad_fn is None and x.is_leaf",
        "id(x) == id(x) and hash(x) == hash(x) and hash('a') == hash('a') and id(x) != id(self.w)",
        "__import__('sys').getsizeof(x) == 80 and torch.is_tensor(x) and len(x) == 100",
        "not any('Fake' in str(e) for e in errors(lambda: x.nothing, lambda: x + 'a', lambda: x.fill_('a')))",
        "str(torch.cuda.get_device_properties(0).uuid).strip('0-') != ''",
        "torch.cuda.memory_allocated() > 0 and torch.cuda.mem_get_info()[0] < torch.cuda.mem_get_info()[1]",
    ],
)
def test_a_fake_tensor_answers_as_a_real_one(condition: str):
    plan = plan_of(
        f"""
        def errors(*calls):
            for call in calls:
                try:
                    call()
                except Exception as error:
                    yield error

        class ModelNew(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.ones(3))

            def forward(self, x):
                if {condition}:
                    return run(x)
                return x
        """
    )
    assert ops(plan) == ["launch"], plan
    assert proofs(plan) == set()


@pytest.mark.parametrize(
    "expression",
    [
        "x.fake_mode",
        "hasattr(x, 'fake_mode')",
        "getattr(x, 'fake_' + 'device', None)",
        "__import__('operator').attrgetter('fake_mode')(x)",
        "'{0.fake_mode}'.format(x)",
        "isinstance(x, __import__('torch._subclasses').__getattribute__('_subclasses').FakeTensor)",
        "__import__('tilewright')",
        "__import__('importlib').import_module('tilewright.cell.trace')",
        "[__import__('sys').modules[n] for n in ('tilewright',) if n in __import__('sys').modules] or 1 / 0",
    ],
)
def test_asking_for_the_tracer_is_refused_or_finds_nothing(expression: str):
    plan = forward(f"try:\n    found = {expression}\nexcept Exception:\n    pass\nreturn run(x)")
    found_nothing = "modules[n]" in expression
    assert proofs(plan) == (set() if found_nothing else {"recognises-tracer"})


@pytest.mark.parametrize(
    "expression",
    [
        "repr(x)",
        "str(x)",
        "f'{x}'",
        "'%s' % x",
        "'{}'.format([x])",
        "x.__repr__()",
        "torch.Tensor.__repr__(x)",
        "torch._tensor_str._str(x)",
        "print(x, file=__import__('io').StringIO())",
        "__import__('pickle').dumps(x)",
        "__import__('copy').copy(x)",
        "__import__('numpy').asarray(x)",
        "x.untyped_storage().tolist()",
        "x.untyped_storage()[0]",
        "bytes(x.untyped_storage())",
        "list(x.cpu().tolist())",
    ],
)
def test_texts_and_copies_of_data_cannot_be_traced(expression: str):
    plan = forward(f"found = {expression}\nreturn run(x)")
    assert ("reads-data", "untraceable") in rules(plan)


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("torch.cuda.memory_stats()", "reads-memory-state"),
        ("torch.cuda.memory_summary()", "reads-memory-state"),
        ("torch.cuda.utilization()", "reads-clock"),
        ("torch.cuda.Event(enable_timing=True).elapsed_time(torch.cuda.Event(enable_timing=True))", "reads-clock"),
    ],
)
def test_figures_of_the_machine_cannot_be_traced(expression: str, rule: str):
    assert (rule, "untraceable") in rules(forward(f"found = {expression}\nreturn run(x)"))


@pytest.mark.parametrize(
    "condition",
    [
        "torch.cuda.memory_allocated() > 2**26",
        "torch.cuda.memory.max_memory_allocated() % 5 == 1",
        "torch.cuda.mem_get_info()[0] < 149_450_000_000",
        "-time.perf_counter() + time.perf_counter() > 1",
        "-time.perf_counter_ns() + time.perf_counter_ns() < 2000",
        "__import__('timeit').default_timer() - __import__('timeit').default_timer() < -1",
        "hash('abc') % 2 == START[0]",
        "id(run) % 4096 == START[1]",
        "__import__('os').getpid() == START[2]",
        "__import__('socket').gethostname() == START[3]",
        "__import__('platform').node() == START[3]",
        "__import__('os').getcwd() == START[4]",
        "__import__('os').cpu_count() == START[5]",
        "torch.get_num_threads() == START[6]",
        "'HOME2' in __import__('os').environ",
        "torch.cuda.is_current_stream_capturing()",
        "torch.cuda.current_stream().cuda_stream == 0",
        "torch.cuda.get_device_properties(0).uuid == START[7]",
        "x._version == 0",
        "calls() == 2",
        "calls() == 9",
    ],
)
def test_a_plan_that_depends_on_the_machine_is_refused(condition: str):
    plan = plan_of(
        f"""
        import os, platform, socket, itertools
        os.environ["HOME2"] = "1"
        calls = iter([i for i in range(1000)]).__next__
        START = [hash("abc") % 2, id(run) % 4096, os.getpid(), socket.gethostname(), os.getcwd(), os.cpu_count(),
                 torch.get_num_threads(), torch.cuda.get_device_properties(0).uuid]

        class ModelNew(nn.Module):
            def forward(self, x):
                o = run(x)
                return run(o) if {condition} else o
        """
    )
    assert "hidden-state" in proofs(plan)


def test_a_file_may_refuse_to_be_captured():
    body = "if torch.cuda.is_current_stream_capturing():\n    raise RuntimeError('not while capturing')\nreturn run(x)"
    assert rules(forward(body)) == []


def test_a_file_that_leaves_no_time_to_look_at_it_is_not_followed(monkeypatch: pytest.MonkeyPatch):
    """Else it could burn time until nobody asks what it does while a graph is captured."""
    monkeypatch.setattr(trace_purity, "_SECONDS", 0.0)
    body = "o = run(x)\nreturn run(o) if torch.cuda.is_current_stream_capturing() else o"
    assert ("too-many-steps", "untraceable") in rules(forward(body))


@pytest.mark.parametrize(
    "body",
    [
        "s.index = 0\nwith torch.cuda.stream(s):\n    o = run(x)\nreturn o",
        "s.cuda_stream = 0\nwith torch.cuda.stream(s):\n    o = run(x)\nreturn o",
        "s._streams._joined.add(s.index)\nwith torch.cuda.stream(s):\n    o = run(x)\nreturn o",
        "s.wait_stream(torch.cuda.current_stream())\nwith torch.cuda.stream(s):\n    o = run(x)\n"
        "e = torch.cuda.Event()\ne._stream = e.index = 1\ntorch.cuda.current_stream().wait_event(e)\nreturn o",
        "torch.cuda.set_stream(s)\nwith s:\n    s._previous = torch.cuda.default_stream()\nreturn run(x)",
        "k = double[(2,)](x, torch.empty_like(x), 100, B=64)\nk._launch = print\no = run(x)\nk[(2,)](x, o, 100)\n"
        "return o",
    ],
)
def test_what_a_file_gets_stands_for_what_it_did_with_it(body: str):
    """Whatever it does to the attributes: on a device they decide nothing."""
    answer = trace(module("s = torch.cuda.Stream()\n" + body))
    if "error" in answer:
        assert answer["error"]["kind"] == "exception", answer
    elif "k[" in body:
        assert ops(answer["plans"][0]).count("launch") == 3
    else:
        assert "side-stream" in proofs(answer["plans"][0])


def test_classes_of_what_a_file_gets_are_torch_s_to_it():
    body = "type(torch.cuda.current_stream()).synchronize = lambda self: None\nreturn run(x)"
    assert "tampering" in proofs(forward(body))


# state --------------------------------------------------------------------------------------------------------------

STATE = {
    "count": "next(COUNT)",
    "count-method": "STEP()",
    "list-iterator": "next(ITERATOR)",
    "dict-iterator": "next(KEYS)",
    "cycle": "next(CYCLE)",
    "zip": "next(PAIRS)",
    "enumerate": "next(NUMBERED)",
    "generator": "next(GENERATOR)",
    "generator-expression": "next(SQUARES)",
    "bytearray": "BYTES[0] += 1",
    "array": "ARRAY[0] += 1",
    "memoryview": "VIEW[1] += 1",
    "numpy": "NUMPY[0] += 1",
    "slots": "SLOTTED.n += 1",
    "slots-base": "SLOTTED.base += 1",
    "set": "SET.add(len(SET))",
    "deque": "DEQUE.append(1)",
    "default-dict": "DEFAULTS['n'] += 1",
    "counter": "COUNTER['n'] += 1",
    "context": "CONTEXT.set(CONTEXT.get() + 1)",
    "partial": "PARTIAL.args[0].append(1)",
    "namespace": "SPACE.n += 1",
    "nested": "NESTED['a'][0]['b'].append(1)",
    "keyword-default": "remember()",
    "function": "run.calls = getattr(run, 'calls', 0) + 1",
    "kernel": "double.calls = getattr(double, 'calls', 0) + 1",
    "class": "type(self).n = getattr(type(self), 'n', 0) + 1",
    "module": "math.calls = getattr(math, 'calls', 0) + 1",
    "local-module": "m = math\nsetattr(m, 'my_' + 'calls', getattr(m, 'my_calls', 0) + 1)",
    "torch-class": "nn.Linear.calls = getattr(nn.Linear, 'calls', 0) + 1",
    "weak-dictionary": "WEAK[self] = WEAK.get(self, 0) + 1",
    "random": "RANDOM.random()",
    "string-buffer": "BUFFER.write('1')",
    "property": "self.prop = 1",
    "method": "METHOD(1)",
    "tensor-in-lru-cache": "cached(x)",
    "tensor-in-method-cache": "self.keep(x)",
    "module-random": "random.random()",
    "numpy-random": "np.random.rand()",
    "cache-figures": "sized(1)\nsized.cache_info()",
    "cached-list": "boxed()[0] += 1",
    "instance-dict": "self.__dict__['n'] = self.__dict__.get('n', 0) + 1",
}


@pytest.mark.parametrize("name", STATE)
def test_state_that_is_hidden_well(name: str):
    lines = STATE[name].replace("\n", "\n                ")
    plan = plan_of(
        f"""
        import array, collections, contextvars, io, itertools, math, types, weakref
        import numpy as np
        COUNT, STEP = itertools.count(), itertools.count().__next__
        ITERATOR, KEYS, CYCLE = iter([1] * 99), iter(dict.fromkeys(range(99))), itertools.cycle([1, 2, 3])
        PAIRS, NUMBERED = zip(range(99), range(99)), enumerate([1] * 99)
        BYTES, ARRAY, NUMPY = bytearray(4), array.array("i", [0]), np.zeros(3)
        VIEW = memoryview(bytearray(4))
        SET, DEQUE, COUNTER = set(), collections.deque(), collections.Counter()
        DEFAULTS = collections.defaultdict(int)
        CONTEXT = contextvars.ContextVar("n", default=0)
        PARTIAL, SPACE = functools.partial(print, []), types.SimpleNamespace(n=0)
        NESTED, WEAK = {{"a": [{{"b": []}}]}}, weakref.WeakKeyDictionary()
        RANDOM, BUFFER, METHOD = random.Random(0), io.StringIO(), [].append
        SQUARES = (i * i for i in range(99))

        def generator():
            n = 0
            while True:
                n += 1
                yield n

        GENERATOR = generator()

        class Base:
            __slots__ = ("base",)

        class Slotted(Base):
            __slots__ = ("n",)
            def __init__(self):
                self.n = self.base = 0

        SLOTTED = Slotted()

        def remember(*, seen=[]):
            seen.append(1)

        @functools.cache
        def sized(n):
            return n

        @functools.cache
        def boxed():
            return [0]

        @functools.lru_cache
        def cached(x):
            return x.shape

        class ModelNew(nn.Module):
            @property
            def prop(self):
                return 1

            @prop.setter
            def prop(self, value):
                NESTED["a"].append(value)

            @functools.lru_cache
            def keep(self, x):
                return 1

            def forward(self, x):
                {lines}
                return run(x)
        """
    )
    assert "hidden-state" in proofs(plan), rules(plan)


@pytest.mark.parametrize(
    "line",
    [
        "BLOCKS.setdefault(x.shape, 64)",
        "BLOCKS[x.shape, x.dtype] = (64, 'warp', None)",
        "self.block = 64",
        "self.sizes[x.shape[0]] = triton.cdiv(x.numel(), 64)",
        "blocks(x.shape[0])",
        "options(x.shape[0])",
    ],
)
def test_numbers_that_shapes_decide_may_be_kept(line: str):
    plan = plan_of(
        f"""
        BLOCKS = {{}}

        @functools.lru_cache
        def blocks(n):
            return n // 2

        @functools.cache
        def options(n):
            return {{"num_warps": 4, "sizes": [n]}}

        class ModelNew(nn.Module):
            def __init__(self):
                super().__init__()
                self.block, self.sizes = None, {{}}

            def forward(self, x):
                {line}
                return run(x)
        """
    )
    assert set(rules(plan)) <= {("keeps-numbers", "evidence")}
    assert bool(plan["findings"]) == ("blocks(" not in line)


# taking the tracer apart --------------------------------------------------------------------------------------------


FRAME_OF_EXCEPTION = """
import operator

def frame_of_exception():
    try:
        raise ValueError
    except ValueError as error:
        return operator.attrgetter("__traceback__.tb_" + "frame")(error)

"""


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("__import__('sys')._getframe()", "inspects-frames"),
        ("__import__('inspect').currentframe()", "inspects-frames"),
        ("__import__('inspect').stack()", "inspects-frames"),
        ("(i for i in ()).gi_frame", "inspects-frames"),
        ("__import__('operator').attrgetter('gi_' + 'frame')(i for i in ())", "inspects-frames"),
        ("frame_of_exception()", "inspects-frames"),
        ("list(__import__('traceback').walk_stack(None))", "inspects-frames"),
        ("__import__('gc').get_objects()", "inspects-memory"),
        ("__import__('gc').get_referrers(x)", "inspects-memory"),
        ("__import__('gc').get_referents(x)", "inspects-memory"),
        ("__import__('signal').signal(14, print)", "process"),
        ("setattr(nn.functional.relu, '__code__', (lambda x, inplace=False: x).__code__)", "tampering"),
        ("setattr(nn.functional.relu, '__defaults__', (True,))", "tampering"),
    ],
)
def test_ways_to_the_tracer_are_marked_even_where_the_file_goes_on(expression: str, rule: str):
    plan = plan_of(
        FRAME_OF_EXCEPTION + module(f"try:\n    found = {expression}\nexcept BaseException:\n    pass\nreturn run(x)")
    )
    assert rule in proofs(plan), rules(plan)
    assert ops(plan) == ["launch"]


@pytest.mark.parametrize(
    "line",
    [
        "torch.relu, old = (lambda v: v), torch.relu\n{}\ntorch.relu = old",
        "torch.Tensor.add, old = (lambda v: v), torch.Tensor.add\n{}\ntorch.Tensor.add = old",
        "old = torch.cuda.Event.record\nsetattr(torch.cuda.Event, 'record', print)\n{}\ntorch.cuda.Event.record = old",
        "old = time.time\ntime.time = lambda: 0\n{}\ntime.time = old",
        "old = triton.cdiv\ntriton.cdiv = lambda a, b: 2\n{}\ntriton.cdiv = old",
        "import json\nold = json.dumps\njson.dumps = print\n{}\njson.dumps = old",
        "vars(nn.functional)['gelu'], old = print, nn.functional.gelu\n{}\nvars(nn.functional)['gelu'] = old",
    ],
)
@pytest.mark.parametrize("inner", ["y = run(x)", "y = torch.empty_like(x)"])
def test_what_is_replaced_only_meanwhile_is_seen(line: str, inner: str):
    plan = forward(line.format(inner) + "\nreturn run(x)")
    assert "tampering" in proofs(plan)


@pytest.mark.parametrize(
    "line",
    [
        "torch.set_grad_enabled(not torch.is_grad_enabled())",
        "torch.set_default_dtype(torch.float64)",
        "torch.autograd.set_detect_anomaly(True)",
        "nn.modules.module.register_module_forward_hook(lambda m, i, o: o * 0)",
        "__import__('sys').setrecursionlimit(10**6)",
        "__import__('sys').setswitchinterval(100.0)",
        "__import__('gc').disable()",
    ],
)
@pytest.mark.parametrize("place", ["import", "forward"])
def test_settings_left_behind(line: str, place: str):
    body = module(f"{line}\nreturn run(x)") if place == "forward" else f"{line}\n\n{module('return run(x)')}"
    assert "tampering" in proofs(plan_of(body))


def test_settings_of_a_block_are_fine():
    plan = forward(
        """
        with torch.enable_grad(), torch.inference_mode(False), torch.device(x.device), torch.autocast("cuda"):
            y = torch.empty(100)
        with torch.no_grad():
            return run(x, y)
        """
    )
    assert rules(plan) == []


def test_what_was_written_down_cannot_be_taken_back():
    from tilewright import _core

    number = _core.open_record()
    _core.write_record("step", "{}")
    with pytest.raises(RuntimeError):
        _core.open_record()
    entries = _core.read_record(number, "step")
    entries.clear()
    assert _core.read_record(number, "step") == ["{}"]
    for _ in range(2):
        _core.write_once("finding", "a", 1)
        _core.write_once("finding", "b", 1)
    assert _core.read_record(number, "finding") == ["a"]
    _core.close_record(number)
    with pytest.raises(RuntimeError):
        _core.close_record(number)
    assert _core.read_record(number, "step") == ["{}"]


FUNCTIONS = """
from triton.runtime.jit import JITFunction
seen = []
for function in (
    torch.cuda.is_available, torch.cuda.current_stream, JITFunction.run, time.time, double.run,
    torch.cuda.current_stream().wait_stream, torch.Generator.__new__, torch.nn.Module._apply, torch.compile,
    type(torch.cuda.current_stream()).__init__, torch.UntypedStorage.data_ptr, torch.cuda.memory_allocated,
):
    for name in ("__globals__", "__closure__", "__code__", "__self__", "__func__", "__wrapped__", "__dict__"):
        if hasattr(function, name):
            seen.append((function, name))
assert not seen, seen

"""


def test_the_tracer_s_functions_show_nothing_of_it():
    response = trace(FUNCTIONS + module("return run(x)"))
    assert "plans" in response, response
