"""Structures of proteins: contacts, distances and a backbone, from aligned sequences (Jumper et al. 2021)."""

from heedful.run.task import Inside, Lazy, Task

FOLD = Task(
    name="fold",
    data="structures of proteins (.cif, .pdb) and alignments (.a3m), or made chains",
    does="folds proteins",
    example="GIVEQCCTSICSLYQLENYCN",
    counted="chains",
    headline=("precision", "lddt"),
    recipe=Lazy("heedful.tasks.fold.recipe:FoldRecipe"),
    job=Lazy("heedful.tasks.fold.train:FoldJob"),
    served=Lazy("heedful.tasks.fold.use:StructurePredictor"),
    asks={"fold": Lazy("heedful.tasks.fold.use:ASK")},
    facts=Lazy("heedful.tasks.fold.use:predictor_facts"),
    laws=Lazy("heedful.tasks.fold.laws:FoldProbe"),
    evaluate=Lazy("heedful.tasks.fold.use:score_predictor"),
    inside=Inside(look=Lazy("heedful.tasks.fold.look:look_at_structure")),
    hub_lacks="the Hub has no format for models of alignments",
    commands=Lazy("heedful.tasks.fold.cli:COMMANDS"),
)
