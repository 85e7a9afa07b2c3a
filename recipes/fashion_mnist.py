"""Fashion-MNIST: 60,000 grey pictures of 28 x 28 pixels, ten kinds of clothes; a Vision Transformer from nothing.

heed train recipes/fashion_mnist.py --data PATH/TO/fashion_mnist --out runs/fashion_mnist
python -m benchmarks.images --data PATH/TO/fashion_mnist --out runs/fashion-table --minutes 10
"""

from heedful.tasks.recipe import ImagesRecipe, Recipe, TrainRecipe

recipe = Recipe(
    task="classify-images",
    preset="vit-nano28",
    model={"d_model": 128, "stem": [32, 64]},
    images=ImagesRecipe(batch=128, augment="light"),
    train=TrainRecipe(minutes=10, optimizer="muon", warmup=100, average=0.99, eval_every=1500),
)
