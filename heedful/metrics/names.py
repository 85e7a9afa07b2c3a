"""The names of scores in messages."""

from heedful.errors import counted

LABELS = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
BEFORE = "_before"  # ends the name of a score that the model had with which a training began
TEACHER = "_teacher"  # of one that a teacher has, from whose translations it was learnt
SPEED = "sentences_per_second"
SHARES = {"map": "mAP", "map50": "mAP@0.5", "map75": "mAP@0.75", "miou": "mean IoU"}


def in_words(name: str, value: float | int) -> str:
    """A score with its name."""
    if isinstance(value, int):
        return counted(value, name.removesuffix("s").replace("_", " "))
    if name.endswith(BEFORE):
        return f"{in_words(name.removesuffix(BEFORE), value)} before"
    if name.endswith(TEACHER):
        return f"{in_words(name.removesuffix(TEACHER), value)} of the teacher"
    if name == SPEED:
        return f"{value:,.0f} sentences/s"
    if name == "exact":
        return f"{100 * value:.1f} % exactly right"
    if name in LABELS:
        return f"{LABELS[name]} {value:.1f}"
    return f"{SHARES.get(name, name.replace('_', ' '))} {value:.3f}"
