"""What a module of this package has for each of its families."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from torch import Tensor

from heedful.exchange.hf.keys import KeyReader
from heedful.exchange.hf.rules import Config, Recast, Rule


@dataclass(frozen=True)
class Family(Generic[Config]):
    """How models of one kind move.

    `config_from_hf` gets their config.json, their tensors' names, and where to say that an error is, and raises
    InputError for a key that is not known, or a value that we cannot build. `config_to_hf` gets our configuration, and
    the ids or names that stand beside the weights (`heedful.run.task.Hub`), and gives what `config_from_hf` makes that
    configuration from; it raises InputError for one that the family cannot hold, and names what it is. `recast` may
    have an equal one.
    """

    name: str
    config: type[Config]  # of our models that may be of this family
    loads: Callable[[Config], str]  # the class of transformers, by our configuration
    config_from_hf: KeyReader[Config]
    config_to_hf: Callable[..., dict[str, Any]]
    rules: Callable[[Config], tuple[Rule, ...]]
    suits: Callable[[Config], bool] = lambda config: True  # of such configurations, those that it may hold
    head: str = ""  # the module of theirs that a family of models with one head is known by
    kind: str = ""  # and how the name of their class ends
    whole: Callable[[Mapping[str, Tensor]], dict[str, Tensor]] = dict  # names tensors as in a file with all heads
    made: Callable[[Config], dict[str, Tensor]] = lambda config: {}  # theirs that are no weights of ours
    recast: Callable[[Config], Recast[Config]] = lambda config: Recast(config, dict)
    tokens: Mapping[str, int] = field(default_factory=dict)  # the ids that a config.json which names none means
    alias: str = ""  # its model_type, where another family holds the same models, and comes before it
