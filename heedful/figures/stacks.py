"""The drawing of a stack of blocks, and the boxes that several families share."""

from collections.abc import Iterator, Sequence

from torch import nn

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.embed import EmbedConfig
from heedful.look.architecture import Add, Box, DrawnResidual, Kind, Part, Repeat

ACTIVATIONS = {"relu": "ReLU", "gelu": "GELU", "gelu_tanh": "GELU (tanh)", "quick_gelu": "quick GELU", "silu": "SiLU"}
SCHEMES = {
    "none": "",
    "added": "positions added to q, k",
    "rotary": "rotary positions",
    "alibi": "ALiBi",
    "buckets": "relative positions",
    "shaw": "relative keys (Shaw)",
}
NORMS = {"layer": "LayerNorm", "rms": "RMSNorm", "rms_offset": "RMSNorm"}


class Sizes:
    """The numbers of parameters of a model's parts, by name. Tied parameters count under their first name."""

    def __init__(self, model: nn.Module) -> None:
        self._sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}

    def of(self, *names: str) -> int:
        """The number of parameters of these modules, or of parameters by name."""
        return sum(
            size
            for own, size in self._sizes.items()
            if any(own == name or own.startswith(f"{name}.") for name in names)
        )

    @property
    def total(self) -> int:
        return sum(self._sizes.values())


def counted(notes: Sequence[str], parameters: int) -> tuple[str, ...]:
    """The notes that are not empty, and the number of parameters if there are any."""
    said = [note for note in notes if note]
    return (*said, f"{parameters:,}") if parameters else tuple(said)


def named(label: str, kind: Kind, parameters: int, *notes: str, name: str = "") -> Box:
    """A box whose last note is its number of parameters."""
    return Box(label=label, kind=kind, notes=counted(notes, parameters), parameters=parameters, name=name)


def embedding(config: EmbedConfig, d_model: int, sizes: Sizes, at: str, *, shared: str = "") -> tuple[Part, ...]:
    """The parts from the tokens to the input of a stack. `shared` is a note on what the matrix is tied to."""
    made: list[Part] = []
    size = sizes.of(f"{at}.tokens")
    scaled = "times √d_model" if config.scaled else ""
    made.append(named("Token embedding", "embed", size, f"{config.vocab_size:,} x {d_model:,}", scaled, shared))
    if config.position_embeddings != "none":
        size = sizes.of(f"{at}.position_embeddings")
        kind = "learned" if config.position_embeddings == "learned" else config.position_embeddings
        room = f"{kind}, {config.context_length:,}" if kind == "learned" else kind
        made.append(Add(label="positions", notes=counted([room], size), parameters=size))
    if config.types:
        size = sizes.of(f"{at}.types")
        made.append(Add(label="types", notes=counted([f"{config.types} of text"], size), parameters=size))
    if config.norm_eps is not None:
        made.append(Box(label="LayerNorm", kind="norm", parameters=sizes.of(f"{at}.norm")))
    return tuple(made)


def stack(config: StackConfig, d_model: int, sizes: Sizes, at: str, *, causal: bool) -> tuple[Part | Repeat, ...]:
    """The blocks of a stack, and its final norm."""
    pattern = config.pattern or (config.block,)
    note, shared = "", 0
    if config.shared_position.kind != "none":
        note = f"{scheme(config.shared_position.kind)}, shared"
        shared = sizes.of(f"{at}.position")
    made: list[Part | Repeat] = []
    whole, rest = divmod(config.n_layers, len(pattern))
    for times, first, turns in ((whole, 0, pattern), (1, whole * len(pattern), pattern[:rest])):
        if not times or not turns:
            continue
        parts = [
            part
            for number, layer in enumerate(turns)
            for part in block(layer, d_model, sizes, f"{at}.blocks.{first + number}", causal=causal)
        ]
        made.append(Repeat(times=times, parts=tuple(parts), note=note, parameters=shared, name=at))
        shared = 0
    if config.final_norm:
        made.append(Box(label=NORMS[config.block.norm], kind="norm", parameters=sizes.of(f"{at}.norm")))
    return tuple(made)


def reach(config: BlockConfig) -> Iterator[str]:
    """What its self-attention sees, where that is not all."""
    if config.window is not None:
        yield f"window of {config.window}" + (f" in steps of {config.dilation}" if config.dilation > 1 else "")
    if config.block is not None:
        yield f"blocks of {config.block}"
    if config.stride is not None:
        yield f"the last of each {config.stride}"
    if config.global_tokens:
        yield f"the first {config.global_tokens}"
    if config.compress is not None:
        yield f"keys of {config.compress} tokens as one"


def block(config: BlockConfig, d_model: int, sizes: Sizes, at: str, *, causal: bool) -> tuple[Part, ...]:
    """One block as its residual connections; a block of any other kind as a single box."""
    label = "Masked multi-head attention" if causal else "Multi-head attention"
    within = ", ".join(reach(config))
    match config.kind:
        case "transformer" | "unnormed" | "longformer":
            pass
        case "windows" | "shifted_windows":
            label, within = "Attention in windows", f"{config.window} x {config.window} patches"
            within += ", shifted" if config.kind == "shifted_windows" else ""
        case _:
            return (named(config.kind.replace("_", " ").capitalize(), "recurrent", sizes.of(at)),)
    own = sizes.of(*(f"{at}.{part}" for part in ("self_attention", "global_attention", "compress", "offsets")))
    made: list[Part] = [residual(config, attention(config.attention, label, d_model, own, within), sizes, at, "self")]
    if config.cross is not None:
        cross = attention(config.cross, "Cross-attention", d_model, sizes.of(f"{at}.cross_attention"), name="cross")
        made.append(residual(config, cross, sizes, at, "cross"))
    made.append(residual(config, mlp(config, d_model, sizes.of(f"{at}.mlp")), sizes, at, "mlp"))
    return tuple(made)


def scheme(kind: str) -> str:
    """A position scheme in words; an unknown one by its name."""
    return SCHEMES.get(kind, f"{kind} positions")


def attention(
    config: AttentionConfig, label: str, d_model: int, parameters: int, *notes: str, name: str = "self"
) -> Box:
    head_dim = config.head_dim or d_model // config.n_heads
    heads = f"{config.n_heads} heads of {head_dim}" if config.n_heads > 1 else f"1 head of {head_dim}"
    keys = f"{config.kv_heads} of keys, values" if config.kv_heads not in (None, config.n_heads) else ""
    gate = "gated" if config.gate else ""
    return named(label, "attention", parameters, heads, keys, scheme(config.position.kind), gate, *notes, name=name)


def mlp(config: BlockConfig, d_model: int, parameters: int) -> Box:
    activation = ACTIVATIONS[config.activation]
    widths = f"{d_model:,} → {config.d_ff:,} → {d_model:,}"
    many = "" if config.experts is None else f"{config.experts.number} experts, {config.experts.used} for each token"
    each = f"{activation}, gated" if config.gated else activation
    return named("Feed forward", "mlp", parameters, many, widths, each)


def residual(config: BlockConfig, branch: Box, sizes: Sizes, at: str, part: str) -> DrawnResidual:
    """The branch with its norms: after the sum (post), before the branch (pre), or before and after it (sandwich)."""
    norm = NORMS[config.norm]

    def normed(where: str, label: str) -> Box:
        return Box(label=label, kind="norm", parameters=sizes.of(f"{at}.{part}_residual.{where}"))

    if config.kind == "unnormed" and part == "self":
        return DrawnResidual(branch=(branch,))
    match config.order:
        case "post":
            return DrawnResidual(branch=(branch,), norm=normed("out_norm", f"Add & {norm}"))
        case "pre":
            return DrawnResidual(branch=(normed("in_norm", norm), branch))
        case "sandwich":
            return DrawnResidual(branch=(normed("in_norm", norm), branch, normed("branch_norm", norm)))


def head(label: str, inputs: int, outputs: int, parameters: int, *notes: str) -> Box:
    return named(label, "linear", parameters, f"{inputs:,} → {outputs:,}", *notes)


def softmax(over: str) -> Box:
    return Box(label="Softmax", kind="softmax", notes=(over,) if over else ())
