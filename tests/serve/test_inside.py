"""Looking inside over HTTP: the weights, the steps and the numbers are those of the model."""

import json

import pytest
import torch
from fastapi.testclient import TestClient

from heedful.look.architecture_layout import picture
from heedful.look.record import record
from heedful.serve.app import make_app
from heedful.tasks.detect.look import look_at_things
from heedful.tasks.detect.use import Detector
from heedful.tasks.translate.inside.look import look_at_translation
from heedful.verbs.draw import drawn
from serving import hosted, language_model, opened, translator

TEXT = "ko la ba"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    made = tmp_path_factory.mktemp("inside")
    translator(made / "en-fr", "en", "fr")
    language_model(made / "writer")
    return made


@pytest.fixture(scope="module")
def client(folder, runs):
    models = hosted(folder / "en-fr", folder / "writer", runs["rnn"], runs["label"], runs["detect"], runs["match"])
    return TestClient(make_app(models, runs=folder), base_url="http://localhost", raise_server_exceptions=False)


def asked(client: TestClient, path: str, status: int = 200, **body) -> dict:
    found = client.post(f"/api/{path}", json=body)
    assert found.status_code == status, found.text
    return found.json()


@pytest.mark.parametrize("model", ["en-fr", "rnn"])
def test_the_weights_of_a_translation(client, folder, runs, model: str) -> None:
    found = asked(client, "look", model=model, text=TEXT)
    own = opened(folder / model if model == "en-fr" else runs[model])
    looked = look_at_translation(own, TEXT)
    assert found["tokens"] == {"source": looked.source, "target": looked.said}
    assert list(found["layers"]) == list(looked.weights)
    for name, weights in found["layers"].items():
        torch.testing.assert_close(torch.tensor(weights), looked.weights[name], atol=1e-6, rtol=0)
    assert asked(client, "look", model=model, text=TEXT, layer=list(looked.weights)[-1])["layers"].keys() == {
        list(looked.weights)[-1]
    }


def test_the_weights_of_a_text_that_is_read(client, folder) -> None:
    found, own = asked(client, "look", model="writer", text=TEXT), opened(folder / "writer")
    ids = own.begun(TEXT)
    with torch.no_grad(), record(own.model) as recording:
        own.model(torch.tensor([ids]))
    assert len(found["tokens"]["source"]) == len(ids)
    for name, weights in found["layers"].items():
        torch.testing.assert_close(torch.tensor(weights), recording.weights(name)[0], atol=1e-6, rtol=0)


def test_what_a_page_draws(client) -> None:
    view = asked(client, "view", model="en-fr", text=TEXT)
    assert view["title"] == TEXT
    assert {layer["kind"] for layer in view["layers"]} == {"cross", "encoder", "decoder"}
    assert len(view["steps"]) == len(view["texts"]["produced"])
    page = client.post("/api/view", json={"model": "en-fr", "text": TEXT, "kind": "html"})
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'sha256-" in page.text
    assert client.post("/api/view", json={"model": "writer", "text": TEXT, "kind": "png"}).content[:4] == b"\x89PNG"


def test_maps_of_a_picture(client, picture: bytes) -> None:
    file = {"file": ("../a <b>.png", picture, "image/png")}
    found = client.post("/api/view", files=file, data={"json": '{"model": "detect"}'})
    assert found.status_code == 200, found.text
    view = found.json()
    assert view["title"] == ".._a__b_.png".lstrip(".")
    assert view["picture"].startswith("data:image/png;base64,")
    assert all("box" in one for one in view["maps"])
    asks = json.dumps({"model": "match", "options": {"shown": ["a", "b"]}})
    texts = client.post("/api/view", files=file, data={"json": asks})
    assert [one["name"] for one in texts.json()["maps"]] == ["a", "b"]
    assert asked(client, "view", 415, model="detect", text="a")["error"]["message"] == "detect reads pictures"


def test_the_weights_behind_the_maps_of_a_detector(client, runs, picture: bytes, tmp_path) -> None:
    file = {"file": ("a.png", picture, "image/png")}
    found = client.post("/api/look", files=file, data={"json": '{"model": "detect"}'})
    assert found.status_code == 200, found.text
    (tmp_path / "a.png").write_bytes(picture)
    looked = look_at_things(Detector.load(runs["detect"]), tmp_path / "a.png")
    assert found.json()["tokens"] == {"target": [one.label for one in looked.found]}
    assert found.json()["dims"] == {"cross_attention": ["query", "row", "column"]}
    torch.testing.assert_close(torch.tensor(found.json()["layers"]["cross_attention"]), torch.stack(looked.maps))


def test_the_steps_of_a_translation(client, folder) -> None:
    ((found),) = asked(client, "steps", model="en-fr", text=TEXT, options={"top": 5, "most": 64})["answers"]
    own = opened(folder / "en-fr")
    assert found["text"] == own.translate(TEXT)
    ((best, *_),) = own.hypotheses(own.encode([TEXT])[0], own.decoding())
    tokens = [*best.tokens, *([own.target.eos] if best.finished else [])]
    assert [step["said"]["token"] for step in found["steps"]] == tokens
    assert found["steps"][-1]["total"] == pytest.approx(best.log_probability, abs=1e-4)
    for step in found["steps"]:
        chances = [one["before"] for one in step["top"]]
        assert chances == sorted(chances, reverse=True)
        assert 0 <= step["entropy"] < 9


def test_the_tree_of_a_beam_search(client) -> None:
    (found,) = asked(client, "steps", model="en-fr", text=TEXT, options={"beam": 3})["answers"]
    nodes = found["tree"]
    assert sum(node["rank"] == 0 for node in nodes) == 1
    assert {node["fate"] for node in nodes} <= {"lives", "fell out", "ended", "unfinished"}
    assert all(node["parent"] is None or nodes[node["parent"]]["step"] == node["step"] - 1 for node in nodes)
    assert asked(client, "steps", 400, model="en-fr", text=TEXT, options={"beam": 1})["error"]["message"]


def test_another_token_changes_what_follows(client) -> None:
    def steps(**options) -> list[dict]:
        return asked(client, "steps", model="en-fr", text=TEXT, options=options)["answers"][0]["steps"]

    first = steps()
    other = first[1]["top"][-1]["token"]
    chosen = [first[0]["said"]["token"], other]
    again = steps(chosen=chosen)
    assert [step["said"]["token"] for step in again[:2]] == chosen
    assert again[1]["top"] == first[1]["top"]


@pytest.mark.parametrize(
    ("sampling", "kept"), [({"top_k": 3}, 3), ({"temperature": 0.0}, 1), ({"top_p": 0.0001}, 1), ({}, 10)]
)
def test_what_sampling_cuts(client, sampling: dict, kept: int) -> None:
    options = {"most": 2, "sampling": sampling}
    steps = asked(client, "steps", model="writer", text=TEXT, options=options)["answers"][0]["steps"]
    assert [sum(one["after"] > 0 for one in step["top"]) for step in steps] == [kept] * 2


def test_the_steps_of_a_text_are_those_of_its_greedy_continuation(client, folder) -> None:
    found = asked(client, "steps", model="writer", text=TEXT, options={"most": 6})["answers"][0]
    ((made,),) = opened(folder / "writer").generate([TEXT], tokens=6, temperature=0.0)
    said = [step["said"]["token"] for step in found["steps"]][: len(made.tokens)]
    assert said == made.tokens
    told = [step["total"] for step in found["steps"]][: len(said)]
    assert told == pytest.approx(torch.tensor(made.logprobs).cumsum(0).tolist(), abs=1e-4)
    options = {"chosen": said[:3], "first": 3, "most": 1}
    (later,) = asked(client, "steps", model="writer", text=TEXT, options=options)["answers"][0]["steps"]
    assert [one["token"] for one in later["top"]] == [one["token"] for one in found["steps"][3]["top"]]
    assert later["total"] == pytest.approx(found["steps"][3]["total"], abs=1e-4)


def test_a_walk_through_one_attention(client, folder) -> None:
    layer = "decoder.blocks.0.cross_attention"
    found = asked(client, "walk", model="en-fr", text=TEXT, layer=layer, head=1, query=2)
    looked = look_at_translation(opened(folder / "en-fr"), TEXT)
    assert found["weights"] == pytest.approx(looked.weights[layer][1, 2].tolist(), abs=1e-6)
    assert (found["queries"], found["keys"]) == (looked.said, looked.source)
    assert found["difference"] < 1e-6
    last = asked(client, "walk", model="writer", text=TEXT, layer="stack.blocks.0.self_attention", head=0, query=1)
    assert last["allowed"] == [True, True, *[False] * (len(last["keys"]) - 2)]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("walk", {"model": "rnn", "text": TEXT, "layer": "attention"}, 400),
        ("walk", {"model": "en-fr", "text": TEXT, "layer": "nothing"}, 400),
        ("walk", {"model": "en-fr", "text": TEXT, "layer": "decoder.blocks.0.cross_attention", "head": 9}, 400),
        ("walk", {"model": "en-fr", "text": TEXT, "layer": "decoder.blocks.0.cross_attention", "query": 999}, 400),
        ("walk", {"model": "en-fr", "text": TEXT}, 422),
        ("look", {"model": "nobody", "text": TEXT}, 404),
        ("look", {"model": "en-fr", "text": ""}, 400),
        ("look", {"model": "en-fr", "text": TEXT, "layer": "x"}, 400),
        ("look", {"model": "en-fr", "inputs": ["a", "b"]}, 422),
        ("view", {"model": "en-fr", "text": TEXT, "kind": "exe"}, 422),
        ("view", {"model": "en-fr", "text": "ko la ba " * 200, "target": "ko"}, 400),
        ("steps", {"model": "en-fr", "text": TEXT, "options": {"chosen": [10**9]}}, 400),
        ("steps", {"model": "writer", "text": "ko " * 100}, 400),
        ("align", {"model": "en-fr", "text": TEXT, "options": {"word": 99}}, 400),
        ("align", {"model": "en-fr", "text": " "}, 400),
    ],
)
def test_what_cannot_be_looked_at_is_said(client, path: str, body: dict, status: int) -> None:
    error = asked(client, path, status, **body)["error"]
    assert error["message"]
    assert "\n" not in error["message"]


def test_words_and_what_they_looked_at(client, folder) -> None:
    (own,) = asked(client, "align", model="en-fr", text=TEXT)["answers"]
    (made,) = asked(client, "translate", model="en-fr", text=TEXT)["answers"]
    assert own["text"] == made["text"] == opened(folder / "en-fr").translate(TEXT)
    assert own["confidence"] == pytest.approx(made["confidence"], abs=1e-4), "the page and programs see one figure"
    assert not made["calibrated"]
    options = {"target": "de fi ko", "word": 1, "top": 4}
    (found,) = asked(client, "align", model="en-fr", text=TEXT, options=options)["answers"]
    assert (found["text"], found["source"]) == ("de fi ko", TEXT.split())
    assert [word["text"] for word in found["words"]] == ["de", "fi", "ko"]
    for word in (*own["words"], *found["words"]):
        assert 0 <= word["probability"] <= 1
        assert 0 <= sum(word["source"]) <= 1 + 1e-5
    assert len(found["others"]) <= 4
    for other in found["others"]:
        assert other["translation"].startswith("de ")
        assert other["text"] in other["translation"]


def test_each_sentence_and_what_is_between_them(client, folder) -> None:
    text = "  Ko la gi. De fi!\n\nKo \u200b\tla "
    (own,) = asked(client, "align", model="en-fr", text=text)["answers"]
    parts = ["Ko la gi.", "De fi!", "Ko \u200b\tla"]
    assert [sentence["source"] for sentence in own["sentences"]] == parts
    apart = [asked(client, "align", model="en-fr", text=part)["answers"][0] for part in parts]
    words = [word for each in apart for word in each["words"]]
    assert [word["text"] for word in own["words"]] == [word["text"] for word in words]
    count = len(words[-1]["source"])
    assert own["words"][-1]["source"][-count:] == pytest.approx(words[-1]["source"], abs=1e-5)
    assert own["source"] == [word for each in apart for word in each["source"]]
    assert own["confidence"] == pytest.approx(min(each["confidence"] for each in apart), abs=1e-5)
    assert own["text"].startswith("  ")
    assert own["text"].count("\n") == 2
    for sentence, each in zip(own["sentences"], apart, strict=True):
        assert text[sentence["source_begin"] :].startswith(sentence["source"])
        assert own["text"][sentence["begin"] :].startswith(each["text"])
        assert (sentence["source_words"], sentence["words"]) == (len(each["source"]), len(each["words"]))
        assert sentence["confidence"] == pytest.approx(each["confidence"], abs=1e-5)
    place = len(apart[0]["words"])
    (found,) = asked(client, "align", model="en-fr", text=text, options={"word": place})["answers"]
    (alone,) = asked(client, "align", model="en-fr", text=parts[1], options={"word": 0})["answers"]
    assert [other["text"] for other in found["others"]] == [other["text"] for other in alone["others"]]
    for whole, other in zip(found["others"], alone["others"], strict=True):
        assert other["translation"] in whole["translation"]
    for text in ("", " \n "):
        assert (
            asked(client, "align", 400, model="en-fr", text=text)["error"]["message"] == "there is no text to translate"
        )


def test_a_warning_is_that_of_its_sentence_and_a_glossary_is_used(client) -> None:
    options = {"glossary": [["ko", "su"], ["la", "x" * 40]]}
    (own,) = asked(client, "align", model="en-fr", text="Ba de. Ko fi. La de.", options=options)["answers"]
    assert [("warning" in sentence) for sentence in own["sentences"]] == [False, False, True]
    assert "su" in own["sentences"][1]["text"].lower()
    assert "for 'la'" in own["sentences"][2]["warning"]


def test_a_model_is_drawn_as_its_run_is(client, folder) -> None:
    for dark in (False, True):
        found = client.get(f"/api/models/en-fr/figure?dark={dark}")
        assert found.headers["content-type"] == "image/svg+xml"
        assert found.content == picture(drawn(str(folder / "en-fr")), "svg", dark=dark)
    assert client.get("/api/models/none/figure").status_code == 404


def test_the_models_that_are_served(client) -> None:
    found = {one["name"]: one for one in client.get("/api/models").json()["models"]}
    assert found["en-fr"]["languages"] == ["en", "fr"]
    assert found["writer"]["streams"] == "generate"
    assert found["detect"]["verbs"]["detect"]["reads"] == "pictures"
    assert all(one["parameters"] > 0 for one in found.values())


def test_a_run_that_is_trained_on_is_told_beside_the_scores_of_the_model_that_answers(tmp_path) -> None:
    def scored(bleu: float) -> None:
        scores = {"steps": 1, "minutes": 1.0, "scores": {"test": {"bleu": bleu}}}
        (tmp_path / "en-fr" / "scores.json").write_text(json.dumps(scores))

    def told() -> tuple[dict, bool]:
        (found,) = client.get("/api/models").json()["models"]
        return found["scores"], found["outdated"]

    translator(tmp_path / "en-fr", "en", "fr")
    scored(10.0)
    client = TestClient(make_app(hosted(tmp_path / "en-fr")), base_url="http://localhost")
    assert told() == ({"bleu on test": 10.0}, False)
    translator(tmp_path / "en-fr", "en", "fr", seed=1)
    scored(20.0)
    assert told() == ({"bleu on test": 10.0}, True)


@pytest.mark.parametrize("more", [{"text": "ba " * 700}, {"text": TEXT, "target": "ba " * 700}])
def test_what_grows_by_the_square_of_a_text_is_bounded(client, more: dict[str, str]) -> None:
    for path in ("look", "view", "walk", "align"):
        layer = {"layer": "decoder.blocks.0.cross_attention"} if path == "walk" else {}
        told = asked(client, path, 413, model="en-fr", **more, **layer)["error"]
        assert "2,100 characters, at most 2,000" in told["message"]
