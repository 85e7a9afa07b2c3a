"""The tree of a beam search is that of the search itself."""

import pytest
import torch

from heedful.decode.search import beam
from heedful.decode.trace import BeamNode, Traced
from heedful.models import make_model
from heedful.models.presets import RNNSize, TransformerSize, translator_config
from loud import make_loud

BOS, EOS = 2, 3
SIZES = {
    "transformer": TransformerSize(
        d_model=16, n_heads=2, d_ff=32, encoder_layers=1, decoder_layers=1, order="pre", dropout=0.0
    ),
    "rnn": RNNSize(d_embed=8, d_hidden=8, d_align=8, d_readout=8, dropout=0.0),
}


def path_to(nodes: list[BeamNode], place: int) -> list[int]:
    """The tokens from the root, which is left out, to a node."""
    made: list[int] = []
    while (parent := nodes[place].parent) is not None:
        made.append(nodes[place].token)
        place = parent
    return made[::-1]


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("name", SIZES)
def test_it_is_that_of_the_search(name: str, width: int) -> None:
    model = make_model(translator_config(SIZES[name], source_vocab=19, target_vocab=19, joint=True)).eval()
    make_loud(model, std=0.7)
    source = torch.randint(4, 19, (1, 6))
    options = {"bos": BOS, "eos": EOS, "longest": 7, "beam": width, "n_best": width}
    (plain,) = beam(model, source, **options)
    traced = Traced(model)
    (found,) = beam(traced, source, **options)
    assert found == plain
    nodes = traced.tree(found, eos=EOS)
    assert (nodes[0].parent, nodes[0].token, nodes[0].total) == (None, BOS, 0.0)
    for rank, hypothesis in enumerate(found):
        (place,) = [place for place, node in enumerate(nodes) if node.rank == rank]
        assert path_to(nodes, place) == [*hypothesis.tokens, *([EOS] if hypothesis.finished else [])]
        assert nodes[place].total == pytest.approx(hypothesis.log_probability, abs=1e-4)
        assert nodes[place].score == hypothesis.score
        assert nodes[place].fate == ("ended" if hypothesis.finished else "unfinished")
    parents = {node.parent for node in nodes}
    for place, node in enumerate(nodes):
        assert (node.fate == "lives") == (place in parents)
        assert node.parent is None or nodes[node.parent].step == node.step - 1
    live = [sum(node.step == step and node.rank is None for node in nodes) for step in range(1, 6)]
    assert max(live) <= width
    assert any(node.fate == "fell out" for node in nodes)
