"""ESM-2, a language model of proteins, from and to folders of the Hub, by `transformers`' own code.

Weights are loud (see `loud.py`); logits agree to 1e-5 of the largest, all else exactly.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from transformers import AutoTokenizer, EsmConfig, EsmForMaskedLM, EsmModel, EsmTokenizer

import heedful
from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.embed import EmbedConfig
from heedful.data.text.documents import Documents
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models.encoder import Encoder, EncoderConfig, token_dropout
from heedful.store.model import read_model
from heedful.tasks.fill.use import Filler
from heedful.tasks.recipes import build
from heedful.verbs.check import check
from heedful.verbs.exchange import export_model, import_model
from heedful.verbs.train import train
from hub import SMALL, Imported
from loud import make_loud

# As published, in their order.
RESIDUES = "LAGVSERTIDPKQNFYMHWCXBUZO.-"
TOKENS = ["<cls>", "<pad>", "<eos>", "<unk>", *RESIDUES, "<null_1>", "<mask>"]
PROTEINS = ["MKTAYIAKQR", "M", "GIVEQCCTSICSLYQLENYCN.-X", "M K T\nA", "MKjT", "mkjT", "MJJ", " ", "<mask>M<null_1>"]
MASKED = ["MK<mask>AYIAKQR", "<mask>", "GIVEQ<mask><mask>TSICSLYQ"]

Pair = Imported[Filler]


def esm_folder(folder: Path, kind: Any = EsmForMaskedLM, **options: Any) -> Any:
    ids = {"mask_token_id": 32, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    own = {"position_embedding_type": "rotary", "emb_layer_norm_before": False, "token_dropout": True}
    sizes = SMALL | {"vocab_size": len(TOKENS), "max_position_embeddings": 40}
    model = make_loud(kind(EsmConfig(**sizes | ids | own | options)), norm=1.0).eval()
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(TOKENS))
    EsmTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return model


@pytest.fixture(scope="module", params=[True, False], ids=["token dropout", "plain"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("hub") / "theirs"
    theirs, run = esm_folder(folder, token_dropout=request.param), folder.parent / "run"
    import_model(folder, run)
    return Pair(theirs, AutoTokenizer.from_pretrained(folder), folder, run, heedful.load(run))


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    largest = float(expected.abs().max())
    assert largest > 1, "weights are loud"
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * largest)


def test_sequences_have_their_ids(pair: Pair) -> None:
    own = pair.ours.tokenizer
    ids = own.encode_whole(PROTEINS)
    assert [[own.bos, *each, own.eos] for each in ids] == pair.tokenizer(PROTEINS).input_ids
    assert own.decode_whole(ids[0]) == PROTEINS[0]
    for role in ("pad", "unk", "mask"):
        assert getattr(own, role) == getattr(pair.tokenizer, f"{role}_token_id")


def test_masks_are_filled_as_theirs(pair: Pair) -> None:
    """In a batch, in which each text has its own share of masks, and where several texts share a row."""
    read = pair.tokenizer(MASKED, return_tensors="pt", padding=True)
    with torch.no_grad():
        expected = pair.theirs(**read).logits
    valid = read.attention_mask > 0
    model = pair.ours.model
    close(model(read.input_ids, read.attention_mask)[valid], expected[valid])
    lengths = valid.sum(1)
    row = torch.cat([ids[:length] for ids, length in zip(read.input_ids, lengths, strict=True)])
    close(model(row[None], torch.arange(1, 4).repeat_interleave(lengths)[None])[0], expected[valid])
    for text, logits, ids in zip(MASKED, expected, read.input_ids, strict=True):
        chances = logits[ids == 32].softmax(1)
        chances[:, [*pair.tokenizer.all_special_ids]] = 0.0
        for found, own in zip(pair.ours.fill([text], top=3)[0], chances, strict=True):
            assert [each.token for each in found.candidates] == [TOKENS[i] for i in own.topk(3).indices]
            assert [each.score for each in found.candidates] == pytest.approx(own.topk(3).values.tolist(), abs=1e-5)


def test_contacts_are_theirs(pair: Pair) -> None:
    text, model = PROTEINS[0], pair.ours.model
    read = pair.tokenizer([text], return_tensors="pt")
    theirs = EsmForMaskedLM.from_pretrained(pair.folder, attn_implementation="eager").eval()
    with torch.no_grad(), record(model, "stack.*") as recording:
        expected = theirs.predict_contacts(read.input_ids, read.attention_mask)
        model(read.input_ids)
    maps = torch.cat([recording.weights(name) for name in recording.names], dim=1)
    found = model.predict_contacts(maps)
    assert found.shape == (1, len(text), len(text))
    torch.testing.assert_close(found.sigmoid(), expected, rtol=0, atol=1e-5)
    assert float(expected.std()) > 0.01


def test_its_laws_hold(pair: Pair) -> None:
    assert [law.name for law in check(pair.run) if not law.holds] == []


def test_there_and_back_and_there(pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export_model(pair.run, tmp_path / "back").family == "ESM-2"
    back, theirs = EsmForMaskedLM.from_pretrained(tmp_path / "back").eval(), pair.theirs.state_dict()
    assert "MISSING" not in capsys.readouterr().err
    assert back.state_dict().keys() == theirs.keys()
    assert all(torch.equal(value, theirs[name]) for name, value in back.state_dict().items())
    assert back.config.token_dropout == pair.theirs.config.token_dropout
    assert AutoTokenizer.from_pretrained(tmp_path / "back")(PROTEINS).input_ids == pair.tokenizer(PROTEINS).input_ids
    ids = pair.tokenizer(MASKED, return_tensors="pt", padding=True)
    with torch.no_grad():
        assert torch.equal(back(**ids).logits, pair.theirs(**ids).logits)
    import_model(tmp_path / "back", tmp_path / "run")
    ours, expected = read_model(tmp_path / "run"), read_model(pair.run)
    assert ours[0] == expected[0]
    assert all(torch.equal(ours[1][name], value) for name, value in expected[1].items())


def test_an_encoder_without_a_head(tmp_path: Path) -> None:
    theirs = esm_folder(tmp_path / "theirs", EsmModel)
    import_model(tmp_path / "theirs", tmp_path / "run")
    ours, tokenizer = heedful.load(tmp_path / "run"), AutoTokenizer.from_pretrained(tmp_path / "theirs")
    with torch.no_grad():
        hidden = theirs(**tokenizer(PROTEINS[0], return_tensors="pt")).last_hidden_state[0]
    close(ours.embed([PROTEINS[0]], pool="first")[0], hidden[0])
    export_model(tmp_path / "run", tmp_path / "back")
    back = EsmModel.from_pretrained(tmp_path / "back").state_dict()
    assert all(torch.equal(value, back[name]) for name, value in theirs.state_dict().items())


def test_what_is_imported_can_be_learnt_from(pair: Pair, tmp_path: Path) -> None:
    proteins = [sequence for sequence in PROTEINS if sequence.isupper()]
    plan = {"task": "fill", "start_from": str(pair.run), "train": {"steps": 2, "lr": 1e-6, "muon_lr": 1e-6}}
    corpus = Documents(proteins * 3, proteins, {}, "made", (), ())
    for _ in train(build(plan, where="test"), tmp_path / "run", corpus=corpus):
        pass
    learnt = heedful.load(tmp_path / "run")
    assert learnt.model.config == pair.ours.model.config
    assert learnt.measure(proteins).loss == pytest.approx(pair.ours.measure(proteins).loss, rel=1e-2)


def test_dropped_tokens() -> None:
    tokens = torch.tensor([[9, 9, 5, 5, 9, 5, 5, 5]])
    segments = torch.tensor([[1, 1, 1, 2, 2, 2, 2, 0]])
    scales = token_dropout(tokens, segments, 9)[0, :, 0]
    torch.testing.assert_close(scales, 0.88 * torch.tensor([0, 0, 3, 4 / 3, 0, 4 / 3, 4 / 3, 1]))
    assert token_dropout(torch.full((1, 3), 9), None, 9).tolist() == [[[0.0]] * 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position_embedding_type": "absolute"}, "position_embedding_type is 'absolute': only ESM-2"),
        ({"emb_layer_norm_before": True}, "emb_layer_norm_before is true: only ESM-2"),
        ({"is_folding_model": True}, "is_folding_model is True"),
    ],
)
def test_other_models_of_the_kind_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    esm_folder(tmp_path / "theirs")
    path = tmp_path / "theirs" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        import_model(tmp_path / "theirs", tmp_path / "never")


def test_numbers_that_old_files_hold(tmp_path: Path) -> None:
    """Those that we compute are left out, and rounded ones, which would turn positions otherwise, are refused."""
    esm_folder(tmp_path / "theirs", hidden_size=32)
    path = tmp_path / "theirs" / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    turns = next(tensors.pop(name) for name in [*tensors] if name.endswith("inv_freq"))
    old = {f"esm.encoder.layer.{i}.attention.self.rotary_embeddings.inv_freq": turns.clone() for i in range(2)}
    old |= {"esm.embeddings.position_ids": torch.arange(40)[None]}
    old |= {"esm.embeddings.position_embeddings.weight": torch.zeros(40, 32)}
    safetensors.torch.save_file(tensors | old, path, {"format": "pt"})
    import_model(tmp_path / "theirs", tmp_path / "run")
    name = next(iter(old))
    safetensors.torch.save_file(tensors | old | {name: turns.half()}, path, {"format": "pt"})
    with pytest.raises(InputError, match=f"{name}' is rounded"):
        import_model(tmp_path / "theirs", tmp_path / "never")


def test_a_head_for_contacts_is_asked_for() -> None:
    block = BlockConfig(attention=AttentionConfig(n_heads=2), d_ff=8)
    config = EncoderConfig(d_model=8, embed=EmbedConfig(vocab_size=9), stack=StackConfig(n_layers=1, block=block))
    with pytest.raises(InputError, match="no head for contacts"):
        Encoder(config).predict_contacts(torch.ones(1, 2, 4, 4))
