"""Autotuned launches: which configuration a traced call takes, and what Triton's autotuner shows the file meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triton.runtime.autotuner import Autotuner

from .trace_parts import PLAIN
from .trace_record import Recorder, TraceEnd
from .trace_seal import sealed

if TYPE_CHECKING:
    from .trace import Session
    from .trace_device import DeviceProperties

MOST_DEPENDENT = 64
"""Plans for autotuners that launch only where another one takes a further configuration."""
_TUNING_SECONDS = 0.37
"""How long measuring took, as the file sees it."""


@dataclass
class _Tuned:
    """What an autotuner has left to choose from under one key, as from its first call on."""

    name: str
    tuner: Autotuner
    key: tuple[Any, ...] | None
    """As in the autotuner's cache; None where Triton measures again in every call."""
    configs: list[Any]
    text: str
    """The configurations, to compare them."""
    place: tuple[int, str]
    """The autotuner and its key, as `Tuning` names them."""


class Tuning:
    """The autotuners of one session, and the configurations that the call under way is to take."""

    def __init__(self) -> None:
        self.measuring = False
        """Whether autotuned kernels are launched as in a first call, which measures them."""
        self._wanted: dict[str, int] = {}
        self._tuned: dict[tuple[tuple[int, str], DeviceProperties], _Tuned] = {}
        self._put: dict[tuple[int, str], Any] = {}
        """The configuration that was put last into an autotuner's cache under a key."""
        self._last: dict[int, _Tuned] = {}
        """By autotuner, what it launched last."""

    def take(self, wanted: dict[str, int]) -> None:
        """From now on calls take these configurations, by the names that `choices` gives, and of all else the first.
        Autotuners are as if they had chosen so before."""
        self._wanted = wanted
        for tuned in self._tuned.values():
            config = self._config(tuned)
            if tuned.key is not None and self._put.get(tuned.place) is not None:
                self._keep(tuned, config)
            if self._last.get(id(tuned.tuner)) is tuned:
                tuned.tuner.best_config = config

    def chosen(self, session: Session, rec: Recorder, tuner: Autotuner, kwargs: dict[str, Any]) -> tuple[Any, int]:
        """The configuration that this launch takes, and of how many."""
        key = _key(tuner, kwargs) if len(tuner.configs) > 1 else ()
        tuned = self._left(session, rec, tuner, key, kwargs)
        config = self._config(tuned)
        if tuned.key is not None:
            self._keep(tuned, config)
        tuner.best_config = config
        tuner.bench_time = _TUNING_SECONDS
        tuner.configs_timings = {c: [1.0 + (c is not config)] * 3 for c in tuned.configs}
        self._last[id(tuner)] = tuned
        if tuned.name not in rec.choices:
            rec.choices[tuned.name] = len(tuned.configs)
            index, of = self._index(tuned), len(tuned.configs)
            entry = {"function": tuner.base_fn.__name__, "index": index, "of": of, "config": str(config)}
            rec.write("choice", entry)
        return config, len(tuned.configs)

    def _left(
        self, session: Session, rec: Recorder, tuner: Autotuner, key: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _Tuned:
        """What is left to choose from. As with Triton, the file's own pruning is asked in a first call only; where it
        is asked again, the file has had the autotuner forget, and must answer the same."""
        plain = all(type(value) in PLAIN for value in key)
        text = repr([value if type(value) in PLAIN else type(value).__name__ for value in key])
        place = (id(tuner), text)
        known = self._tuned.get((place, session.card.properties))
        cache = tuner.cache
        if type(cache) is not dict or (key in cache and cache[key] is not self._put.get(place)):
            message = f"the file fills the cache of the autotuner of {tuner.base_fn.__name__}"
            rec.find("tampering", "proof", message, help="Let Triton measure the configurations.")
            raise TraceEnd
        if known is not None and key in cache:
            return known
        cache.pop(key, None)  # filled on another device
        configs = list(tuner.prune_configs(kwargs)) if len(tuner.configs) > 1 else list(tuner.configs)
        written = repr([(config.all_kwargs(), config.pre_hook is None) for config in configs])
        name = known.name if known else _name(rec, tuner, text)
        tuned = _Tuned(name, tuner, key if plain else None, configs, written, place)
        if known is not None and known.text != written:
            message = f"the configurations left of {tuner.base_fn.__name__} are not those of an earlier call"
            rec.find("hidden-state", "proof", message, help="Prune by shapes, dtypes and the device alone.")
        self._tuned[place, session.card.properties] = tuned
        return tuned

    def _index(self, tuned: _Tuned) -> int:
        return min(self._wanted.get(tuned.name, 0), len(tuned.configs) - 1)

    def _config(self, tuned: _Tuned) -> Any:
        return tuned.configs[self._index(tuned)]

    def _keep(self, tuned: _Tuned, config: Any) -> None:
        """Fills the autotuner's cache, as Triton does where there is a choice."""
        if len(tuned.tuner.configs) > 1:
            tuned.tuner.cache[tuned.key] = self._put[tuned.place] = config


def install(session: Session) -> None:
    """Replaces the launch of Triton's autotuner in this process."""

    def tune(self: Autotuner, *args: Any, **kwargs: Any) -> Any:
        return _autotuned(session, self, args, kwargs)

    Autotuner.run = sealed(tune, "run")


def _autotuned(session: Session, tuner: Autotuner, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A launch with the configuration that this trace is told to take, as in a call whose winner is cached.

    `reset_to_zero`, `restore_value` and the decorator's `pre_hook` act only while Triton measures, so a cached call
    does not show them; a configuration's own `pre_hook` acts in every call. In a trace that measures, a launch comes
    first whose results only these hooks can undo.
    """
    rec = session.recorder("an autotuned kernel is launched")
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    config, of = session.tuning.chosen(session, rec, tuner, kwargs)
    conflicts = kwargs.keys() & config.kwargs.keys()
    if conflicts:
        raise ValueError(
            f"Conflicting meta-parameters: {', '.join(conflicts)}."
            " Make sure that you don't re-define auto-tuned symbols."
        )
    if of > 1 and (tuner.reset_to_zero or tuner.user_defined_pre_hook):
        rec.find(
            "tuning-hook",
            "advice",
            "reset_to_zero and pre_hook of @triton.autotune act only while configurations are measured; "
            "later calls run without them",
            help="Write what the kernel needs in forward itself, for example out.zero_() or torch.zeros.",
        )
    if session.tuning.measuring and of > 1:
        _measured(tuner, config, args, kwargs)
    if config.pre_hook is not None:
        config.pre_hook({**tuner.nargs, **kwargs, **config.all_kwargs()})
    result = tuner.fn.run(*args, **kwargs, **config.all_kwargs())
    tuner.nargs = None
    return result


def _measured(tuner: Autotuner, config: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """One launch as Triton measures it, with the hooks around it in Triton's order."""
    given = {**tuner.nargs, **kwargs, **config.all_kwargs()}
    if config.pre_hook is not None:
        config.pre_hook(given)
    tuner.pre_hook(given)
    tuner.fn.run(*args, **kwargs, **config.all_kwargs())
    tuner.post_hook(given, exception=None)
    tuner.pre_hook(given, reset_only=True)


def _key(tuner: Autotuner, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Triton's own key: it measures once for each."""
    given = {k: v for k, v in {**tuner.nargs, **kwargs}.items() if k in tuner.arg_names}
    key = [given[name] for name in tuner.keys if name in given]
    return (*key, *(str(value.dtype) for value in given.values() if hasattr(value, "dtype")))


def _name(rec: Recorder, tuner: Autotuner, key: str) -> str:
    """A name that is the same in every call, though the file may make the autotuner anew in each: the function, the
    key, and which autotuner of that kind it is in the call."""
    name = f"{tuner.base_fn.__name__} {key}"
    return next(f"{name} {n}" for n in itertools.count() if f"{name} {n}" not in rec.choices)


# which calls are traced ---------------------------------------------------------------------------------------------


def taken(choices: dict[str, int], wanted: dict[str, Any]) -> list[dict[str, int]]:
    """For each call to trace besides the first, which configurations it takes, by the names of `choices` (which says
    how many each autotuner has under each key).

    `wanted` is `{"up_to": n}`, each further configuration by itself, or none where there are more than n; or `{"these":
    [[[place, index], …], …]}`, for each call the places in `choices` that do not take their first configuration. Those
    are chosen elsewhere: here the file could see how.
    """
    if "these" in wanted:
        names = list(choices)
        calls = ({names[at]: index for at, index in call if at < len(names)} for call in wanted["these"])
        return [call for call in calls if call and all(index < choices[name] for name, index in call.items())]
    single = [{name: index} for name, of in choices.items() for index in range(1, of)]
    return single if len(single) <= wanted["up_to"] else []


def dependent(known: set[str], rec: Recorder, wanted: dict[str, int]) -> Iterator[dict[str, int]]:
    """Calls for the autotuners that launched first in this one, which took what is `wanted`."""
    for name, of in rec.choices.items():
        if name not in known:
            known.add(name)
            yield from ({**wanted, name: index} for index in range(1, of))
