"""The Transformer's parts: its norms, its training, the input of its decoder, and its steps in order."""

from typing import Literal

import torch
from torch import Tensor, nn

from heedful.core import EVERYONE, AttentionConfig, BlockConfig, Context, Stack, StackConfig
from heedful.core.block import Block
from heedful.data.text.trees import linearise, parse_trees, tree_of
from heedful.figures import architecture as figure_of
from heedful.lab.claims.models import small_translator
from heedful.lab.complexity.measured import operations
from heedful.lab.drawn import curves
from heedful.lab.drawn_words import Strip, strips
from heedful.lab.exhibit import NOTHING_SAID, Rows, Says, Shown, beside, holds, unsaid
from heedful.lab.sizes.rows import transformer
from heedful.look.architecture import DrawnResidual, Repeat
from heedful.models.named import preset as configured
from heedful.training.optim import OptimConfig, schedule

MOST = 12  # words in a drawing
TREE = "(S (NP (DT the) (NN child)) (VP (VBD was) (ADJP (JJ scared))))"


def norms(says: Says, *, preset: str = "transformer-base", blocks: Rows = 12, width: Rows = 64) -> Shown:
    """The position of the norms in the paper's Transformer; and the size of the gradients at each depth of an untrained
    stack, with norms after the sum and before the branch (Xiong et al. 2020, figure 3)."""
    row = transformer(preset)
    told = "after the sum" if row.order == "post" else "before the branch"
    sizes: dict[str, list[float]] = {}
    orders: dict[Literal["post", "pre"], str] = {"post": "after the sum", "pre": "before the branch"}
    for order, name in orders.items():
        torch.manual_seed(0)
        block = BlockConfig(attention=AttentionConfig(n_heads=4), d_ff=4 * width, order=order)
        stack = Stack(width, StackConfig(n_layers=blocks, block=block, final_norm=order == "pre"))
        out = stack(torch.randn(4, 16, width), Context(mask=EVERYONE))
        (out * torch.randn_like(out)).sum().backward()
        norms_of = [
            one.mlp.up.weight.grad
            for one in stack.blocks
            if isinstance(one, Block) and isinstance(one.mlp.up, nn.Linear)
        ]
        sizes[name] = [float(gradient.norm()) for gradient in norms_of if gradient is not None]
    lines = [holds(says, "norm", told, right=told == says["norm"])]
    lines += unsaid(
        {f"gradient of the last block over the first, {name}": each[-1] / each[0] for name, each in sizes.items()},
    )
    drawn = {name: (range(1, blocks + 1), each) for name, each in sizes.items()}
    return Shown(lines, curves(drawn, x="block", y="gradient of its MLP", title="Before training"))


def shifted(says: Says, *, seed: int = 0) -> Shown:
    """The target is shifted by one word, under a causal mask: on which words does each prediction depend?"""
    model, target = small_translator(seed), torch.tensor([[0, 1, 2, 3, 4]])  # <end> is also the first token
    entered: list[Tensor] = []
    handle = model.target.register_forward_hook(lambda module, given, out: entered.append(out))
    logits = model(torch.tensor([[1, 2, 3]]), target[:, :-1])
    handle.remove()
    reached = torch.stack(
        [torch.autograd.grad(row.sum(), entered[0], retain_graph=True)[0][0].abs().sum(-1) > 0 for row in logits[0]]
    )
    earlier = bool(torch.equal(reached, torch.ones_like(reached).tril()))
    lines = [holds(says, "a word is predicted from earlier words alone", earlier)]
    words = ["I", "am", "a", "student", "EOS"]
    rows = [Strip("read", [("<start>", "start")] + [(word, "word") for word in words[:-1]])]
    rows.append(Strip("predicted", [(word, "word") for word in words[:-1]] + [("EOS", "end")]))
    return Shown(lines, strips(rows, title="Teacher forcing: the same words, shifted by one"))


def rates(says: Says, *, warmup: int = 4000, steps: int = 20_000) -> Shown:
    """The paper's learning rate (equation 3): it rises linearly, and falls with the inverse square root of the step."""
    config = OptimConfig(schedule="inverse_sqrt", warmup=warmup)
    at = [*range(1, steps, max(1, steps // 200))]
    base = transformer("transformer-base")
    width = base.d_model
    peak = width**-0.5 * warmup**-0.5
    rate = [peak * schedule(config, step, 0.0) for step in at]
    by_hand = [width**-0.5 * min(step**-0.5, step * warmup**-1.5) for step in at]
    beta1, beta2 = config.betas
    computed = {"warm-up steps": at[max(range(len(at)), key=rate.__getitem__)], "beta 1": beta1, "beta 2": beta2}
    computed |= {"epsilon": config.eps, "residual dropout": base.dropout}
    if abs(int(computed["warm-up steps"]) - warmup) <= steps // 200:  # the peak, within the resolution of the plot
        computed["warm-up steps"] = warmup
    same = max(abs(one - other) for one, other in zip(rate, by_hand, strict=True)) < 1e-12
    own = says if warmup == 4000 else says.but("warm-up steps")
    facts = {"highest rate": peak, "the formula of the paper, at every step": same}
    return Shown(
        beside(own, computed) + unsaid(facts),
        curves({"rate": (at, rate)}, x="step", y="learning rate", marker=""),
    )


def handed_over(says: Says, *, words: Rows = 12, seed: int = 0) -> Shown:
    """What a decoder keeps of the encoder: a key and a value for each word and block, computed once for all steps."""
    model, source = small_translator(seed), torch.randint(1, 8, (1, words))
    with torch.no_grad():
        state = model.start(source)
    memories = [cache.memory for cache in state.caches]
    shapes = {tuple(part.shape) for memory in memories if memory is not None for part in (memory.key, memory.value)}
    pairs = (
        len(shapes) == 1 and all(shape[2] == words for shape in shapes) and len(memories) == len(model.decoder.blocks)
    )
    made = operations(lambda: model.start(source))
    step = operations(lambda: model.step(torch.tensor([0]), state))
    lines = [holds(says, "the decoder is handed", "keys and values" if pairs else "something else", right=pairs)]
    facts = {
        "entries of the database": words,
        "operations to read and project it once": made,
        "of each step afterwards": step,
    }
    rows = [Strip("query", [("s", "asked")])]
    rows += [
        Strip(f"word {number}", [(f"key {number}", "key"), (f"value {number}", "value")])
        for number in range(1, min(words, MOST) + 1)
    ]
    rows += [Strip(f"{words - MOST} more", [])] if words > MOST else []
    return Shown(lines + unsaid(facts), strips(rows, title="The encoder's output as a database"))


def architecture(says: Says, *, preset: str = "transformer-base") -> Shown:
    """A model family's figure 1, drawn from its configuration, as `heed draw` does for any preset. Each branch of a
    residual connection is a sublayer."""
    figure = figure_of(configured(preset), preset)
    branches = {
        column.title.lower(): sum(isinstance(part, DrawnResidual) for part in repeat.parts)
        for column in figure.columns
        for repeat in column.parts
        if isinstance(repeat, Repeat)
    }
    computed = {
        f"sublayers of {'an' if name[0] in 'aeiou' else 'a'} {name} block": count for name, count in branches.items()
    }
    own = says if says.values.keys() <= computed.keys() else NOTHING_SAID
    return Shown(beside(own, computed | {"parameters, millions": figure.parameters / 1e6}), lambda: figure)


def step_by_step(says: Says, *, seed: int = 0) -> Shown:
    """The modules of one forward pass, in the order in which they are called, with the shapes of their outputs."""
    model, told = small_translator(seed), []
    names = {module: name for name, module in model.named_modules()}
    leaves = [
        module for module in model.modules() if not list(module.children()) and not isinstance(module, nn.Identity)
    ]

    def tell(module: nn.Module, given: object, out: object) -> None:
        if isinstance(out, Tensor) and "dropout" not in names[module]:
            told.append((names[module], type(module).__name__, "x".join(map(str, out.shape))))

    handles = [module.register_forward_hook(tell) for module in leaves]
    with torch.no_grad():
        model(torch.tensor([[1, 2, 3]]), torch.tensor([[0, 1]]))
    for handle in handles:
        handle.remove()
    last = "linear projection" if told[-1][1] == "Linear" else told[-1][1]
    rows = [f"  {number:>3}  {name:<45} {kind:<14} {shape}" for number, (name, kind, shape) in enumerate(told, 1)]
    lines = [holds(says, "last step", last, right=last == "linear projection")]
    return Shown(lines + unsaid({"steps": len(told)}), text="\n".join(rows))


def trees(says: Says, *, tree: str = TREE) -> Shown:
    """A tree as a sequence of brackets, which a translator can generate, and the way back."""
    (parsed,) = parse_trees([tree], "the tree")
    said = [*linearise(parsed)]
    again = tree_of(said, [*parsed.leaves()]) == parsed
    lines = [holds(says, "a tree is a sequence of brackets", again)]
    lines += unsaid({"sentence": " ".join(parsed.words()), "said": " ".join(said)})
    boxes = [(token, "opens" if token[0] == "(" else "closes" if token[0] == ")" else "word") for token in said]
    return Shown(lines, strips([Strip("", boxes)], title="A tree, said from left to right"))
