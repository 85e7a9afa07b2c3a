"""Trains a model that folds proteins, on chains of known structure."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy
import torch

from heedful.core.seeds import random_stream
from heedful.data.batches import shuffled_groups
from heedful.data.proteins.chain import Chain, cut, with_sequences
from heedful.data.proteins.reading import MADE, Chains, read_chains
from heedful.errors import InputError, counted
from heedful.look.draw import to_bytes
from heedful.metrics.labels import by_luck
from heedful.metrics.structures import scored_pairs, share_touching
from heedful.models.fold import FOLDS, Fold, fold_config
from heedful.run.card import CardText, Scores, fingerprint, score_table
from heedful.run.job import Job, Measurement
from heedful.run.recipe import row_of
from heedful.tasks.fold.baselines import contact_prior
from heedful.tasks.fold.layout import FoldSpec, batch_of, chain_losses
from heedful.tasks.fold.look import drawn
from heedful.tasks.fold.recipe import FoldRecipe
from heedful.tasks.fold.use import StructurePredictor
from heedful.training.loss import Loss


class ChainBatch(NamedTuple):
    """Chains, which become tensors when their loss is computed."""

    rows: list[Chain]


class FoldTask:
    """Batches of chains, and their loss. In each epoch other parts of long chains are read, and other relatives."""

    def __init__(self, chains: Sequence[Chain], recipe: FoldRecipe) -> None:
        self.chains, self.data, self.plan = chains, recipe.data, recipe.train

    def batches(self, epoch: int, model: object) -> list[ChainBatch]:
        lengths = [min(len(each.letters), self.data.residues) for each in self.chains]
        groups = shuffled_groups(lengths, self.plan.tokens, self.plan.seed, epoch)
        return [ChainBatch([self._read(number, epoch) for number in group]) for group in groups]

    def _read(self, number: int, epoch: int) -> Chain:
        draw, chain = random_stream(self.plan.seed, epoch, number), self.chains[number]
        spare = len(chain.letters) - self.data.residues
        if spare > 0:
            first = draw.randint(0, spare)
            chain = cut(chain, first, first + self.data.residues)
        others = range(1, len(chain.sequences))
        drawn_rows = sorted(draw.sample(others, min(len(others), self.data.sequences - 1)))
        return chain._replace(sequences=chain.sequences[[0, *drawn_rows]])

    def loss(self, model: Fold, batch: ChainBatch) -> Loss:
        read = batch_of(batch.rows).to(model.single.weight.device)
        folded = model(read.sequences, read.valid, read.related)
        return Loss(chain_losses(folded, read).sum(), len(batch.rows))


class FoldJob(Job[FoldRecipe, Chains, Fold]):
    unit: ClassVar = "chains"
    kinds: ClassVar = f'a .cif or .pdb file, or a folder of such with alignments (.a3m), or "{MADE}"'
    served: ClassVar = StructurePredictor
    score_names = ("precision", "lddt")
    answers: FoldSpec

    def __init__(self, recipe: FoldRecipe, corpus: Chains | None = None, begun: Path | None = None) -> None:
        if recipe.start_from:
            raise InputError("a model that folds begins with nothing", fix="leave out --from")
        super().__init__(recipe, corpus, begun)
        chains = self.corpus.train
        self.answers = FoldSpec(sequences=recipe.data.sequences, prior=contact_prior(chains))
        self.config = fold_config(row_of(FOLDS, recipe))
        self.fingerprint = fingerprint(each.fingerprint for each in chains)

    def read(self) -> Chains:
        return read_chains(self.recipe.data.path)

    def describe(self) -> str:
        chains = self.corpus.train
        residues, rows = (sum(each.sequences.shape[axis] for each in chains) for axis in (1, 0))
        return f"{counted(len(chains), 'chain')}, {counted(residues, 'residue')}, {counted(rows, 'aligned sequence')}"

    def own_facts(self) -> dict[str, object]:
        return {"residues": sum(len(each.letters) for each in self.corpus.train)}

    def trained_on(self) -> Iterable[str]:
        return (each.fingerprint for each in self.corpus.train)

    @cached_property
    def valid_fingerprint(self) -> str:
        return fingerprint(each.fingerprint for each in self.corpus.valid)

    def task(self, model: Fold) -> FoldTask:
        return FoldTask(self.corpus.train, self.recipe)

    def floor(self) -> float:
        backbones = [chain.backbone for chain in self.valid if chain.backbone is not None]
        share = float(numpy.mean([share_touching(backbone) for backbone in backbones]))
        return by_luck(sum(map(scored_pairs, backbones)), share)

    def measure(self, model: Fold) -> Measurement:
        """The sample is the first validation chain's contacts and backbone."""
        predictor = StructurePredictor(model, self.spec())
        scores = predictor.measure(self.valid)
        losses = [self._loss(model, chain) for chain in self.valid]
        picture = to_bytes(drawn(predictor.predict(self.valid[0])), "png")
        kept = {name: scores[name] for name in self.score_names}
        return Measurement(float(numpy.mean(losses)), kept, scores["precision"], picture)

    def _loss(self, model: Fold, chain: Chain) -> float:
        read = batch_of([with_sequences(chain, self.recipe.data.sequences)]).to(model.single.weight.device)
        with torch.inference_mode():
            return float(chain_losses(model(read.sequences), read))

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        return CardText(
            what="Folds proteins: contacts, and a backbone, from aligned sequences.",
            learnt_on=f"{self.describe()}, from `{self.corpus.name}`",
            table=score_table("chains", scores),
            how="`precision` is that of the L/5 surest contacts (CAs less than 8 angstroms apart, 6 or more apart in "
            "the chain), and `lddt` that of CAs, from 0 to 1. Beside them is the precision of covariance with APC, and "
            "of how often residues so far apart along the chain touch.",
            kept=f"step {best['step']:,}, the best on the validation chains (precision {best['precision']:.4f})",
            use=[f"heed fold {folder} PROTEIN.a3m --out model.cif", f"heed eval {folder} --data MORE"],
            limits="It has seen only folds like those above, and knows no side chains.",
        )
