"""The sizes of the papers' models, with the same counts as `heed info`."""

from collections.abc import Mapping, Sequence

from heedful.lab.claims.facts import fact
from heedful.lab.drawn import bars, plane
from heedful.lab.exhibit import Claim, Says, Shown, beside, holds, near, unsaid
from heedful.lab.sizes.rows import transformer
from heedful.models.counts import PARAMETERS, VOCABULARY
from heedful.models.presets import ENCODERS, LANGUAGE_MODELS, TRANSLATORS
from heedful.models.seq2seq_presets import Seq2SeqSize
from heedful.models.vision_presets import VISION_TRANSFORMERS

GPT3 = ("Small", "Medium", "Large", "XL", "2.7B", "6.7B", "13B", "175B")
T5_VOCABULARY = 32_128  # the preset is counted with the other translators' vocabulary
# The dates of publication, in years, and the presets.
PUBLISHED = {
    "Transformer, big": (2017.4, "transformer-big"),
    "GPT-1": (2018.4, "gpt-1"),
    "BERT-large": (2018.8, "bert-large"),
    "GPT-2, XL": (2019.1, "gpt2-xl"),
    "T5-large": (2019.8, "t5-large"),
    "GPT-3": (2020.4, "gpt3-175b"),
    "ViT-H": (2020.8, "vit-h14"),
}


def millions(preset: str) -> float:
    return PARAMETERS[preset] / 1e6


def with_facts(says: Says, computed: Mapping[str, object], judged: Sequence[Claim]) -> list[Claim]:
    """The lines of what is computed, those that are `judged` already, and the deck's other claims as facts."""
    own = [line.claim for line in judged]
    facts = [fact(says, claim) for claim in says.values if claim not in (*own, *computed)]
    return [*beside(says.but(*own, *(line.claim for line in facts)), computed), *judged, *facts]


def base_transformer(says: Says) -> Shown:
    """The base and the big model of Vaswani et al. 2017, table 3."""
    row = transformer("transformer-base")
    computed = {
        "blocks on each side": row.encoder_layers,
        "d_model": row.d_model,
        "heads": row.n_heads,
        "d_k": row.d_model // row.n_heads,
        "d_ff": row.d_ff,
    }
    sizes = {f"parameters of {size}, millions": millions(f"transformer-{size}") for size in ("base", "big")}
    return Shown(beside(says.but(*sizes), computed) + [near(says, claim, size) for claim, size in sizes.items()])


def half_the_parameters(says: Says) -> Shown:
    """Compares six decoder blocks without cross-attention with a Transformer of six and six blocks: 43 % of the
    parameters are left, and 60 % with embeddings."""
    row = transformer("transformer-base")
    attention, mlp, norm = 4 * row.d_model**2, 2 * row.d_model * row.d_ff + row.d_model + row.d_ff, 2 * row.d_model
    alone = attention + mlp + 2 * norm
    both = alone + (2 * attention + mlp + 3 * norm)
    table = 37_000 * row.d_model  # tied: both sides and the output
    with_embeddings = (6 * alone + table) / (6 * both + table)
    line = near(says, "share of the parameters that is left", alone / both, share=0.15)
    return Shown([line, *unsaid({"with embeddings, of one vocabulary of 37,000": with_embeddings})])


def gpt1(says: Says) -> Shown:
    computed = {"blocks": LANGUAGE_MODELS["gpt-1"].n_layers}
    return Shown(with_facts(says, computed, [near(says, "parameters, millions", millions("gpt-1"))]))


def gpt2(says: Says) -> Shown:
    row = LANGUAGE_MODELS["gpt2-xl"]
    computed = {"blocks": row.n_layers, "width": row.d_model}
    times = PARAMETERS["gpt2-xl"] / PARAMETERS["gpt-1"]
    judged = [
        near(says, "parameters, billions", PARAMETERS["gpt2-xl"] / 1e9),
        holds(says, "more than ten times GPT-1", f"{times:.1f} times", right=times > 10),
        holds(says, "Reddit pages", "8 million documents of other sites", right=False),
    ]
    sizes = {name: millions(name) for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")}
    return Shown(with_facts(says, computed, judged), bars(sizes, y="parameters, millions"))


def gpt3_sizes(says: Says) -> Shown:
    """The table of sizes: the parameters that follow from the numbers of each row."""
    sizes = {name: PARAMETERS[f"gpt3-{name.lower()}"] / 1e9 for name in GPT3}
    lines = [near(says, f"{name}: parameters, billions", size) for name, size in sizes.items()]
    xl, large = LANGUAGE_MODELS["gpt3-xl"], LANGUAGE_MODELS["gpt3-13b"]
    computed = {"heads times their width at XL": 24 * 128, "heads times their width at 13B": 40 * 128}
    lines += beside(says.but(*(line.claim for line in lines)), computed)
    lines += unsaid({"width here at XL": xl.d_model, "width here at 13B": large.d_model})
    return Shown(lines, bars(sizes, y="parameters, billions", logarithmic=True))


def gpt3_slide(says: Says) -> Shown:
    row = LANGUAGE_MODELS["gpt3-175b"]
    computed = {
        "tokens of context": row.context_length,
        "blocks": row.n_layers,
        "width": row.d_model,
        "heads": row.n_heads,
        "width of a head": row.d_model // row.n_heads,
    }
    judged = [
        near(says, "parameters, billions", PARAMETERS["gpt3-175b"] / 1e9),
        holds(says, "P of GPT", "pre-trained", right=False),
    ]
    return Shown(with_facts(says, computed, judged))


def bert_large(says: Says) -> Shown:
    row = ENCODERS["bert-large"]
    computed = {
        "width": row.d_model,
        "blocks": row.n_layers,
        "heads": row.n_heads,
        "width of a head": row.d_model // row.n_heads,
        "d_ff": row.d_ff or 4 * row.d_model,
    }
    claim, units = "parameters, millions", "4096 is a number of"
    lines = beside(says.but("vocabulary", claim, units), computed)
    lines.append(holds(says, units, "units of a hidden layer", right=False))
    return Shown([*lines, near(says, "vocabulary", row.vocab_size), near(says, claim, millions("bert-large"))])


def over_time(says: Says) -> Shown:
    """The parameters of published models, counted here, by the dates of their papers."""
    counts = {name: millions(preset) for name, (_, preset) in PUBLISHED.items()}
    t5 = TRANSLATORS["t5-large"]
    assert isinstance(t5, Seq2SeqSize)
    counts["T5-large"] -= (VOCABULARY - T5_VOCABULARY) * t5.d_model / 1e6
    computed = {f"{name}, millions": size for name, size in counts.items()}
    points = {name: (when, 1e6 * counts[name]) for name, (when, _) in PUBLISHED.items()}
    axis = "parameters (M: millions, G: billions)"
    return Shown(beside(says, computed), plane(points, x="year of publication", y=axis, logarithmic="y"))


def vit(says: Says) -> Shown:
    sizes = {name: millions(name) for name in ("vit-b16", "vit-l16", "vit-h14")}
    lines = beside(says, {"side of a patch": VISION_TRANSFORMERS["vit-b16"].patch})
    lines += unsaid({f"{name}, millions": size for name, size in sizes.items()})
    return Shown(lines, bars(sizes, y="parameters, millions"))
