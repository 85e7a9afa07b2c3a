"""Denoising of running text, a start for translators and summarisers (Raffel et al. 2020; Lewis et al. 2020)."""

from dataclasses import replace

from heedful.run.task import Lazy
from heedful.tasks.translate import TRANSLATE

DENOISE = replace(
    TRANSLATE,
    name="denoise",
    data="running text (.txt, .jsonl, a folder)",
    does="is a denoiser, which restores marked texts",
    example="My sister <mask> a book.",
    headline=("perplexity",),
    recipe=Lazy("heedful.tasks.denoise.recipe:DenoiseRecipe"),
    train_options={},
    suited=None,
    tuned=None,
    lesson=None,
    job=Lazy("heedful.tasks.denoise.train:DenoiseJob"),
    prepares=Lazy("heedful.tasks.shared.preparing.texts:preparation"),
    batch=Lazy("heedful.tasks.shared.shapes:of_passages"),
    evaluate=Lazy("heedful.tasks.denoise.use:score_denoiser"),
    commands=None,
    languages=None,
    renamed=None,
    saved_as="translate",
    marked="noise",
    uses=("translate",),
)
