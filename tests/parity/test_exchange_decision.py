"""Runs made of folders of the Hub with a Decision Transformer in them, and folders made of runs: predictions are those
of transformers. Weights are loud."""

import json
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from transformers import DecisionTransformerConfig, DecisionTransformerModel

import heedful
from heedful.core.config import to_json
from heedful.data.episodes.episode import Space
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.decision import DecisionSize, decision_config
from heedful.run.folder import parameters, write_model
from heedful.store.model import read_model
from heedful.tasks.decide.layout import DecideSpec, Window
from heedful.verbs.exchange import export_model, import_model
from loud import make_loud

B, T, S, A = 2, 5, 3, 4
SIZES = {"state_dim": S, "act_dim": A, "hidden_size": 16, "n_layer": 2, "n_head": 2, "max_ep_len": 9, "n_positions": 32}


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def their_folder(folder: Path, **options: Any) -> DecisionTransformerModel:
    torch.manual_seed(1)
    theirs = DecisionTransformerModel(DecisionTransformerConfig(**SIZES | options))
    make_loud(theirs)
    theirs.eval().save_pretrained(folder)
    return theirs


def predicted(theirs: DecisionTransformerModel, returns: Tensor, states: Tensor, actions: Tensor) -> Tensor:
    steps, valid = torch.arange(2, 2 + T).expand(B, T), torch.ones(B, T)
    with torch.no_grad():
        return theirs(states, actions, torch.zeros(B, T, 1), returns[..., None], steps, valid).action_preds


def batch(actions: tuple[int, ...] = (B, T, A)) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    return torch.randn(B, T), torch.randn(B, T, S), torch.randn(actions)


@pytest.mark.parametrize("options", [{}, {"action_tanh": False, "n_inner": 24, "activation_function": "gelu_new"}])
def test_an_import_predicts_as_they_do_and_an_export_is_what_was_imported(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    theirs = their_folder(tmp_path / "theirs", **options)
    imported = import_model(tmp_path / "theirs", tmp_path / "run")
    assert (imported.task, imported.vocab_size) == ("decide", None)
    ours = heedful.load(tmp_path / "run")
    given = batch()
    steps = torch.arange(2, 2 + T).expand(B, T)
    with torch.no_grad():
        close(ours.model(*given, steps), predicted(theirs, *given))
    export_model(tmp_path / "run", tmp_path / "hub")
    again = DecisionTransformerModel.from_pretrained(tmp_path / "hub").eval()
    close(predicted(again, *given), predicted(theirs, *given))
    import_model(tmp_path / "hub", tmp_path / "again")
    (config, tensors), (other, back) = read_model(tmp_path / "run"), read_model(tmp_path / "again")
    assert config == other
    assert all(torch.equal(tensors[name], back[name]) for name in tensors)
    assert heedful.load(tmp_path / "again").about == ours.about


def test_a_model_that_chooses_is_exported_with_what_its_numbers_mean(tmp_path: Path) -> None:
    row = DecisionSize(n_layers=1, d_model=16, n_heads=2, d_state=S, n_actions=A, longest=9)
    model = make_loud(make_model(decision_config(row, continuous=False, bounded=False)))
    spec = DecideSpec(
        observations=Space("vector", S), actions=Space("discrete", A), scale=3.0, mean=(1.0,) * S, deviation=(2.0,) * S
    )
    write_model(tmp_path / "run", model, parameters(model), {"task.json": {"task": "decide", **to_json(spec)}})
    made = export_model(tmp_path / "run", tmp_path / "hub")
    assert "task_specific_params.reinforcement-learning" in made.notes[0]
    assert made.loads == f"transformers.DecisionTransformerModel.from_pretrained({str(tmp_path / 'hub')!r})"
    theirs = DecisionTransformerModel.from_pretrained(tmp_path / "hub").eval()
    told = theirs.config.task_specific_params["reinforcement-learning"]
    returns, states, _ = batch()
    chosen = torch.randint(A, (B, T))
    raw = [Window(s.numpy(), a.numpy(), r.numpy(), 2) for s, a, r in zip(states, chosen, returns, strict=True)]
    wanted = predicted(
        theirs, returns / told["scale"], (states - 1.0) / told["deviation"][0], one_hot(chosen, A).float()
    )
    with torch.no_grad():
        close(heedful.load(tmp_path / "run").model(*spec.batch(raw)), wanted)
    import_model(tmp_path / "hub", tmp_path / "again")
    assert heedful.load(tmp_path / "again").spec == spec
    (config, tensors), (other, back) = read_model(tmp_path / "run"), read_model(tmp_path / "again")
    assert config == other
    assert all(torch.equal(tensors[name], back[name]) for name in tensors)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("scale_attn_weights", False, "scale_attn_weights is False"),
        ("n_headd", 3, "unknown key 'n_headd'"),
        ("activation_function", "mish", "activation_function 'mish'"),
        ("hidden_size", "16", "hidden_size is '16'"),
        ("task_specific_params", {"reinforcement-learning": {"contxt": 3}}, "unknown key 'contxt'"),
        ("task_specific_params", {"reinforcement-learning": {"scale": 0}}, "a scale or context of 0"),
    ],
)
def test_a_folder_that_cannot_be_read_is_one_line(tmp_path: Path, key: str, value: object, says: str) -> None:
    their_folder(tmp_path / "theirs")
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(InputError, match=says):
        import_model(tmp_path / "theirs", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_vectors_of_an_imported_model_are_read_as_they_are(tmp_path: Path) -> None:
    their_folder(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "run")
    spec = heedful.load(tmp_path / "run").spec
    assert torch.equal(spec.states(numpy.ones((2, S), dtype=numpy.float32)), torch.ones(2, S))
