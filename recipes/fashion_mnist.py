"""Fashion-MNIST: 60,000 grey pictures of 28 x 28 pixels, ten kinds of clothes; a Vision Transformer from nothing.

heed train recipes/fashion_mnist.py --data PATH/TO/fashion_mnist --out runs/fashion_mnist
python -m benchmarks.images --data PATH/TO/fashion_mnist --out runs/fashion-table --minutes 10

The first command trains for 10 minutes; on two cores 0.912 of the last 10,000 training pictures, held out, were then
right, and on one core 0.899, in one run each, without their mirror images; they also chose the step that was kept. With
them, and 80 minutes on one core (--minutes 80 --set train.average=0.999), it came to 0.9248.
"""

import heedful

recipe = heedful.recipe(
    "classify-images",
    preset="vit-nano28",
    model={"patch": 7, "d_model": 128, "stem": [32, 32]},
    images={"batch": 128, "augment": "light", "mirrored": True},
    train={
        "minutes": 10,
        "optimizer": "muon",
        "lr": 2e-3,
        "muon_lr": 0.02,
        "warmup": 100,
        "average": 0.99,
        "eval_every": 1500,
    },
)
