"""Folds proteins with a trained model: contacts, distances and a backbone.

R residues.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypedDict

import numpy
import torch
from numpy.typing import NDArray

from heedful.core.arguments import checks_arguments
from heedful.data.proteins.chain import Chain, chain_of, with_sequences
from heedful.data.proteins.reading import read_test_chains
from heedful.errors import InputError
from heedful.metrics.structures import APART, TOUCH, lddt, precision
from heedful.models.fold import LDDT_LEVELS, Fold, limits
from heedful.run.folder import Saved
from heedful.run.task import NOTHING, Ask, NoOptions, Scored
from heedful.tasks.fold.baselines import by_prior, covariance
from heedful.tasks.fold.layout import FoldSpec, batch_of
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.served import TextlessModel, refuse_nan_answers, spec_of

TRIANGLES = 2000  # of three residues, which take as much memory as a token
SCORES = ("precision", "lddt", "precision_covariance", "precision_prior")
LEVELS = (numpy.arange(LDDT_LEVELS) + 0.5) * 100 / LDDT_LEVELS


class Prediction(NamedTuple):
    """`contacts` has for each two residues the probability that their CAs are less than 8 angstroms apart; `backbone`
    the positions of N, CA and C in angstroms; `confidence` for each residue how well its distances agree, as the model
    expects it, from 0 to 100 (lDDT)."""

    chain: Chain
    contacts: NDArray[numpy.float32]  # (R, R)
    backbone: NDArray[numpy.float32]  # (R, 3, 3)
    confidence: NDArray[numpy.float64]  # (R,)

    def surest(self) -> list[tuple[int, int, float]]:
        """The R surest contacts of residues that are at least APART apart along the chain, numbered from 1."""
        first, second = numpy.triu_indices(len(self.contacts), APART)
        chances = self.contacts[first, second]
        order = numpy.argsort(-chances, kind="stable")[: len(self.contacts)]
        return [(int(first[i]) + 1, int(second[i]) + 1, float(chances[i])) for i in order]


class FoldedRecord(TypedDict):
    """A prediction as a record. `contacts` are (residue, residue, probability), the surest first."""

    input: str
    name: str
    sequence: str
    sequences: int
    contacts: list[tuple[int, int, float]]
    backbone: list[list[list[float]]]
    confidence: list[float]


class StructurePredictor(TextlessModel[Fold]):
    """A trained model of structures."""

    task: ClassVar = "fold"
    purpose: ClassVar = "folding"

    def __init__(self, model: Fold, about: dict[str, Any]) -> None:
        super().__init__(model, about)
        self.spec = spec_of(FoldSpec, about)

    @one_or_many()
    def fold(self, texts: Sequence[str]) -> list[Prediction]:
        """The structure of each text: a bare sequence, or one in FASTA or A3M, whose first sequence folds, and whose
        others are its relatives, aligned to it. Raises TextError."""
        return [self.predict(chain_of(text)) for text in texts]

    @torch.inference_mode()
    def predict(self, chain: Chain) -> Prediction:
        """Reads the first of its sequences, as many as in training. Raises TooMuchError."""
        read, L = with_sequences(chain, self.spec.sequences)._replace(backbone=None), len(chain.letters)
        self.spend(read.sequences.size + L**2, L**3 // TRIANGLES)
        batch = batch_of([read]).to(self.model.single.weight.device)
        folded = self.model(batch.sequences)
        refuse_nan_answers(folded.distances, "distances")
        chances = folded.distances[0].float().softmax(-1).cpu()
        near = int((limits(chances.shape[-1]) <= TOUCH).sum())
        backbone = folded.structure.frames[-1].backbone()[0].float().cpu().numpy()
        confidence = folded.agreement[0].float().softmax(-1).cpu().numpy() @ LEVELS
        return Prediction(chain, chances[..., :near].sum(-1).numpy(), backbone, confidence)

    @checks_arguments
    def measure(self, chains: Sequence[Chain]) -> dict[str, float]:
        """The mean over chains of the precision at L/5 and of lDDT; beside them, the precision of covariance with APC
        on the same sequences, and of how often residues so far apart touch. Chains without a contact count for lDDT
        alone. Raises InputError where no structure is known."""
        refuse_nothing(chains)
        scores: dict[str, list[float]] = {name: [] for name in SCORES}
        for chain in chains:
            if chain.backbone is None:
                raise InputError(f"no structure of {chain.name} is known", fix="give chains with one")
            prediction = self.predict(chain)
            read = with_sequences(chain, self.spec.sequences)
            contacts: dict[str, NDArray[Any]] = {
                "precision": prediction.contacts,
                "precision_covariance": covariance(read),
                "precision_prior": by_prior(read, self.spec.prior),
            }
            for name, contact_scores in contacts.items():
                share = precision(contact_scores, chain.backbone)
                scores[name] += [] if share is None else [share]
            agreed = lddt(prediction.backbone, chain.backbone)
            scores["lddt"] += [float(numpy.nanmean(agreed))] if numpy.isfinite(agreed).any() else []
        return {name: float(numpy.mean(values)) if values else 0.0 for name, values in scores.items()}


def folded_record(text: str, prediction: Prediction) -> FoldedRecord:
    return {
        "input": text,
        "name": prediction.chain.name,
        "sequence": prediction.chain.letters,
        "sequences": len(prediction.chain.sequences),
        "contacts": prediction.surest(),
        "backbone": prediction.backbone.round(3).tolist(),
        "confidence": prediction.confidence.round(2).tolist(),
    }


def fold_texts(
    predictor: StructurePredictor, texts: Sequence[str], options: NoOptions = NOTHING
) -> Iterator[FoldedRecord]:
    for text in texts:
        yield folded_record(text, predictor.fold(text))


ASK = Ask(fold_texts, NoOptions)


def score_predictor(predictor: StructurePredictor, options: DataOptions) -> Iterator[Scored]:
    for name, chains in read_test_chains(options.path).items():
        scores: Mapping[str, float] = predictor.measure(chains)
        yield Scored(name, {**scores, "chains": len(chains)}, examples=(each.fingerprint for each in chains))


def predictor_facts(saved: Saved) -> dict[str, Any]:
    spec = spec_of(FoldSpec, dict(saved.about))
    return {"task": "fold", "sequences": f"{spec.sequences} of an alignment"}
