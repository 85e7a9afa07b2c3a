"""Coloured shapes, made on the spot: a small DETR, from nothing.

heed train recipes/shapes_detect.py --out runs/shapes

Of its own ten minutes nobody has measured the end yet. On 1,500 scenes (--data shapes:1500), 1,007 steps in about three
minutes of one busy core: mAP@0.5 0.208, mAP 0.101 on the test scenes, and rising. One run.
"""

from heedful.tasks.recipe import DataRecipe, ImagesRecipe, Recipe, TrainRecipe

recipe = Recipe(
    task="detect",
    preset="detr-nano",
    model={"encoder_layers": 2, "decoder_layers": 2, "n_queries": 8},
    data=DataRecipe(path="shapes"),
    images=ImagesRecipe(batch=32, augment="light"),
    train=TrainRecipe(minutes=10, optimizer="muon", lr=1e-3, muon_lr=0.01, warmup=100, average=0.99, eval_every=500),
)
