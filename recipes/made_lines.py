"""Made lines of printed text, of words that are in no training line: read by a small ViT with a decoder.

heed train recipes/made_lines.py --out runs/lines
heed eval runs/lines --data lines
"""

import heedful

recipe = heedful.recipe(
    "describe",
    preset="describe-nano",
    model={
        "patch_rows": 24,
        "patch": 4,
        "encoder_layers": 3,
        "stem": [32, 64, 128],
        "context_length": 32,
        "dropout": 0.0,
    },
    data={"path": "lines:60000", "tokenizer": "chars"},
    images={"batch": 32, "augment": "none"},
    train={
        "steps": 3000,
        "optimizer": "muon",
        "lr": 2e-3,
        "muon_lr": 0.02,
        "warmup": 100,
        "average": 0.98,
        "eval_every": 500,
        "precision": "fp32",
    },
)
