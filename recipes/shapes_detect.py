"""Coloured shapes, made on the spot: a small DETR, from nothing.

heed train recipes/shapes_detect.py --out runs/shapes
"""

from heedful.tasks.recipe import DataRecipe, ImagesRecipe, Recipe, TrainRecipe

recipe = Recipe(
    task="detect",
    preset="detr-nano",
    model={"encoder_layers": 2, "decoder_layers": 2, "n_queries": 8},
    data=DataRecipe(path="shapes"),
    images=ImagesRecipe(batch=32, augment="light"),
    train=TrainRecipe(minutes=10, lr=1e-3, warmup=100, average=0.99, eval_every=500),
)
