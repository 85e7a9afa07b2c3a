"""Figures of the other families: recurrent translators, actor-critic models, word vectors, decision transformers and
proteins."""

from dataclasses import replace

from heedful.figures.sequences import NEXT, lm_head, lm_parts, tied_note
from heedful.figures.stacks import Sizes, head, named, softmax, stack
from heedful.look.architecture import Add, Architecture, Beside, Box, Column, DrawnResidual, Kind, Link, Repeat
from heedful.models.actor_critic import ActorCriticConfig
from heedful.models.decision import DecisionTransformerConfig
from heedful.models.evoformer import EvoformerConfig
from heedful.models.fold import FoldConfig
from heedful.models.rnn import RNNConfig
from heedful.models.vectors import VectorsConfig


def rnn(config: RNNConfig, title: str, sizes: Sizes) -> Architecture:
    """Bahdanau et al. 2015, figure 1; without attention Cho et al. 2014, figure 1."""
    E, N, vocab = config.d_embed, config.d_hidden, config.target_vocab
    M, looks = (2 * N, config.attention) if config.attention else (N, False)
    reads, way = ("Bidirectional GRU", "both ways") if looks else ("GRU", "one way")
    from_ = "of the backward state" if looks else "of the last state"
    encoder = Column(
        title="Encoder",
        reads="source tokens",
        parts=(
            named("Token embedding", "embed", sizes.of("source"), f"{config.source_vocab:,} x {E:,}"),
            named(reads, "recurrent", sizes.of("encoder"), f"{E:,} → {N:,}, {way}", name="states"),
            named("First state", "linear", sizes.of("first"), f"{N:,} → {N:,}, tanh", from_),
        ),
    )
    scored = f"{N:,} + {M:,} → {config.d_align:,} → 1"
    asks = named(
        "Additive attention", "attention", sizes.of("attention"), "asked by the state before", scored, name="cross"
    )
    gru = named("GRU cell", "recurrent", sizes.of("cell"), f"{E + M:,} → {N:,}", "word, context", name="cell")
    said = f"{N + E + M:,} → {config.d_readout:,}"
    decoder = Column(
        title="Decoder",
        reads="target tokens, shifted right",
        parts=(
            named("Token embedding", "embed", sizes.of("target"), f"{vocab:,} x {E:,}"),
            *((asks,) if looks else ()),
            gru,
            named("Maxout", "linear", sizes.of("readout"), said, "state, word, context"),
            head("Linear", config.d_readout, vocab, sizes.of("head")),
            softmax(""),
        ),
        gives=NEXT,
    )
    known = Link("states", "cross", "keys, values") if looks else Link("states", "cell", "the only context")
    tied = ("One matrix is the embedding of source and target.",) if config.tied else ()
    alone = () if looks else ("The encoder's last state is the context of every word: nothing looks back.",)
    return Architecture(
        title=title,
        parameters=sizes.total,
        columns=(encoder, decoder),
        links=(known, Link("Encoder", "cell", "first state")),
        notes=(*tied, *alone),
    )


def actor_critic(config: ActorCriticConfig, title: str, sizes: Sizes) -> Architecture:
    """A language model with a value head, which estimates the reward expected in each state (Schulman et al. 2017)."""
    value = head("Value", config.lm.d_model, 1, sizes.of("value"))
    parts = (*lm_parts(config.lm, sizes, "lm."), Beside(boxes=(lm_head(config.lm, sizes, "lm."), value)))
    gives = "logits of the next token, and the reward expected"
    column = Column(title="Actor and critic", reads="tokens", parts=parts, gives=gives)
    return Architecture(title=title, parameters=sizes.total, columns=(column,), notes=tied_note(config.lm.tied))


def decision(config: DecisionTransformerConfig, title: str, sizes: Sizes) -> Architecture:
    """Chen et al. 2021, figure 1."""
    C = config.d_model
    tokens = (
        named("Return to go", "embed", sizes.of("returns"), f"1 → {C}"),
        named("State", "embed", sizes.of("states"), f"{config.d_state} → {C}"),
        named("Action", "embed", sizes.of("actions"), f"{config.n_actions} → {C}"),
    )
    size = sizes.of("steps")
    parts = (
        Beside(boxes=tokens),
        Add(label="steps", notes=(f"learned, {config.longest:,}", f"{size:,}"), parameters=size),
        Box(label="LayerNorm", kind="norm", parameters=sizes.of("norm")),
        *stack(config.stack, C, sizes, "stack", causal=True),
        head("Linear", C, config.n_actions, sizes.of("head"), "of the state's token"),
        *(() if config.continuous else (softmax(""),)),
    )
    column = Column(title="Decision Transformer", reads="three tokens a step", parts=parts, gives="the next action")
    return Architecture(title=title, parameters=sizes.total, columns=(column,))


def evoformer(config: EvoformerConfig, title: str, sizes: Sizes, within: str = "") -> Architecture:
    """Jumper et al. 2021, figure 3 a. `within`: what the names of its modules begin with."""
    at, heads = f"{within}blocks.0", f"{config.n_heads} heads of {config.head_dim}"

    def branch(label: str, kind: Kind, parts: tuple[str, ...], *notes: str, name: str = "") -> DrawnResidual:
        own = sizes.of(*(f"{at}.{part}" for part in parts))
        return DrawnResidual(branch=(named(label, kind, own, *notes, name=name),))

    msa = (
        branch("Row attention", "attention", ("row_norm", "pair_norm", "msa_rows"), heads, "gated, biased by pairs"),
        branch("Column attention", "attention", ("column_norm", "msa_columns"), heads, "gated"),
        branch("Transition", "mlp", ("msa_transition",)),
    )
    pair = (
        branch(
            "Outer product mean", "linear", ("outer_product",), f"{config.d_outer}² → {config.d_pair}", name="outer"
        ),
        branch("Triangle product", "mlp", ("outgoing",), "outgoing edges"),
        branch("Triangle product", "mlp", ("incoming",), "incoming edges"),
        branch("Triangle attention", "attention", ("starting",), heads, "around the starting node"),
        branch("Triangle attention", "attention", ("ending",), heads, "around the ending node"),
        branch("Transition", "mlp", ("pair_transition",)),
    )
    offsets = sizes.of(f"{within}offsets")
    table = f"{config.n_kinds} x"
    sides, told = (f"{within}left", f"{within}right"), "which residues touch"
    sequences = Column(
        title="Sequences",
        reads="aligned sequences",
        parts=(
            named("Residues", "embed", sizes.of(f"{within}residues"), f"{table} {config.d_msa}"),
            Repeat(times=config.n_layers, parts=msa, name="msa"),
        ),
    )
    pairs = Column(
        title="Pairs of residues",
        reads="the first sequence",
        parts=(
            named("Left + right residue", "embed", sizes.of(*sides), f"2 x {table} {config.d_pair}"),
            Add(label="distances", notes=(f"to {config.furthest}", f"{offsets:,}"), parameters=offsets),
            Repeat(times=config.n_layers, parts=pair, name="pairs"),
            head("Linear", config.d_pair, config.n_outputs, sizes.of(f"{within}head"), "of both orders, normed"),
        ),
        gives=told if config.n_outputs == 1 else "how far apart residues are",
    )
    return Architecture(
        title=title,
        parameters=sizes.total,
        columns=(sequences, pairs),
        links=(Link("msa", "outer", "sequences of each layer"),),
        notes=("In each layer the pairs bias the rows of sequences, and the sequences change the pairs.",),
    )


def fold(config: FoldConfig, title: str, sizes: Sizes) -> Architecture:
    """Jumper et al. 2021, figures 1 e and 3 d."""
    drawn, structure = evoformer(config.trunk, title, sizes, "trunk."), config.structure
    M, at = structure.d_single, "structure."
    begins = sizes.of("single", f"{at}single_norm", f"{at}pair_norm", f"{at}first")
    weights = sizes.of(f"{at}attention", f"{at}attention_norm")
    heads = f"{structure.n_heads} heads of {structure.head_dim}"
    points = f"{structure.query_points} points asked, {structure.value_points} seen"
    transition = sizes.of(f"{at}transition", f"{at}transition_norm")
    column = Column(
        title="Structure",
        reads="the first sequence, and pairs",
        parts=(
            named("Recycled", "embed", sizes.of("recycling"), f"{config.recycles} times"),
            named("Single", "linear", begins, f"{config.trunk.d_msa} → {M}"),
            DrawnResidual(
                branch=(named("Invariant point attention", "attention", weights, heads, points, name="points"),)
            ),
            DrawnResidual(branch=(named("Transition", "mlp", transition, f"{M} → {M}"),)),
            named("Move and turn frames", "linear", sizes.of(f"{at}update"), f"{M} → 6"),
            named("Angles, agreement", "mlp", sizes.of(f"{at}angles", "agreement")),
        ),
        gives="frames of the backbone",
    )
    repeated = f"Attention, transition and moves are repeated {structure.n_layers} times, by the same weights."
    notes = (*drawn.notes, repeated)
    links = (*drawn.links, Link("pairs", "points", "pairs"))
    return replace(drawn, columns=(*drawn.columns, column), links=links, notes=notes)


def vectors(config: VectorsConfig, title: str, sizes: Sizes) -> Architecture:
    """Mikolov et al. 2013a, figure 1; Pennington et al. 2014, equation 8."""
    glove, cbow = config.method == "glove", config.method == "cbow"
    widths = f"{config.vocab_size:,} x {config.d_model:,}"

    def side(title: str, reads: str, at: str, *notes: str) -> Column:
        own = sizes.of(at, f"{at.removesuffix('s')}_biases")
        return Column(title=title, reads=reads, parts=(named("Vectors", "embed", own, widths, *notes),))

    bias = "and a bias each" if glove else ""
    read = side("Words", "the words near it" if cbow else "a word", "words", "their mean" if cbow else "", bias)
    near = "the word itself" if cbow else "a word near it"
    label = "Dot product, plus both biases: the logarithm of how often they meet" if glove else "Dot product, sigmoid"
    return Architecture(
        title=title,
        parameters=sizes.total,
        columns=(read, side("Contexts", near, "contexts", bias)),
        joined=Box(label=label, kind="softmax"),
        gives="how often the two stand near each other" if glove else "whether the two were found near each other",
    )
