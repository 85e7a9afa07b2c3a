"""Episodes from files and environments: the same however they are stored, and one line for what is wrong."""

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from heedful.data.episodes.environments import environment, is_environment, play, random_episodes
from heedful.data.episodes.episode import Episode, Space, parsed, space_of
from heedful.data.episodes.reading import read_episodes, read_file, read_test_episodes
from heedful.data.episodes.walks import WALKS, BanditWalk, Graph, KeyToDoor
from heedful.errors import HeedError, InputError, MissingError

STEP = {"observations": [[0.5, 1], [2, 3]], "actions": [1, 0], "rewards": [0, 1.5]}
KINDS: dict[str, dict[str, Any]] = {
    "vectors, choices": STEP,
    "choices, choices": STEP | {"observations": [3, 0]},
    "vectors, vectors": STEP | {"actions": [[0.1], [-0.2]]},
}


def same(episodes: list[Episode], others: list[Episode]) -> bool:
    return [each.fingerprint for each in episodes] == [each.fingerprint for each in others]


def written(folder: Path, episodes: list[dict[str, Any]]) -> Path:
    path = folder / "episodes.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in episodes))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_lines_and_arrays_are_the_same_episodes(tmp_path: Path, kind: str) -> None:
    given = [{name: [*values, values[-1]][: 3 - i] for name, values in KINDS[kind].items()} for i in range(2)]
    columns = {name: numpy.array([row for each in given for row in each[name]]) for name in STEP}
    ends = {"terminals": [False] * 4 + [True], "timeouts": [False, False, True, False, False]}
    numpy.savez(tmp_path / "episodes.npz", **columns, **ends)
    read = read_file(written(tmp_path, given))
    assert [len(each) for each in read] == [3, 2]
    assert same(read, read_file(tmp_path / "episodes.npz"))


def test_the_observation_after_the_last_action_is_left_out() -> None:
    whole = parsed(STEP | {"observations": [*STEP["observations"], [7, 7]]}, "here")
    assert whole.fingerprint == parsed(STEP, "here").fingerprint
    assert whole.returns.tolist() == [1.5, 1.5]
    assert whole.total == 1.5
    begun = parsed({"observations": [[1, 2]]}, "here", unfinished=True)
    assert (len(begun), begun.observations.tolist()) == (0, [[1.0, 2.0]])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rewards": [1]}, "2 observations, 2 actions and 1 rewards"),
        ({"rewards": [[1], [2]]}, "a reward is one number"),
        ({"rewards": [1, float("nan")]}, "rewards are not all finite numbers"),
        ({"actions": ["up", "down"]}, "actions are not all finite numbers"),
        ({"actions": [1.5, 2]}, "actions are numbers with fractions"),
        ({"actions": [-1, 2]}, "actions must be from 0 to 9,999"),
        ({"actions": [1, 10_000]}, "actions must be from 0 to 9,999"),
        ({"actions": 3}, "actions: a number, expected a list"),
        ({"observations": [[1], [1, 2]]}, "observations are not all of one size"),
        ({"observations": [[[1]], [[2]]]}, "observations are arrays of 2 dimensions"),
        ({"observations": [], "actions": [], "rewards": []}, "0 observations"),
    ],
)
def test_what_is_wrong_with_an_episode_is_one_line(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = written(tmp_path, [STEP, STEP | changes])
    with pytest.raises(InputError, match=rf"episodes\.jsonl:2: {says}"):
        read_file(path)


def test_what_is_no_episode(tmp_path: Path) -> None:
    for text, says in (("[1]", "a list, expected an episode"), ('{"actions": [1]}', "an episode without observations")):
        (tmp_path / "a.jsonl").write_text(f"{text}\n")
        with pytest.raises(InputError, match=says):
            read_file(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="not a kind of file"):
        read_file(tmp_path / "a.csv")
    with pytest.raises(InputError, match="of several kinds or sizes"):
        space_of([numpy.zeros((2, 3)), numpy.zeros((2, 4))], "observations", "here")


def test_arrays_that_are_no_episodes(tmp_path: Path) -> None:
    """Nor is anything unpickled."""
    path, arrays = tmp_path / "a.npz", {name: numpy.array(values) for name, values in STEP.items()}
    ends: dict[str, Any] = {"terminals": numpy.array([False, True])}
    pickled = {"observations": numpy.array([{"a": 1}, None], dtype=object)}
    for given, says in (
        (arrays, "nothing that says where its episodes end"),
        (ends, "no array 'observations'"),
        (arrays | {"terminals": numpy.array([True])}, "nothing that says where its episodes end"),
        (arrays | {"rewards": numpy.array(1.0)} | ends, "nothing that says where its episodes end"),
        (arrays | ends | pickled, "arrays that cannot be read"),
    ):
        numpy.savez(path, **given)
        with pytest.raises(InputError, match=says):
            read_file(path)
    numpy.savez(path, **arrays, **ends)
    whole = path.read_bytes()
    for damaged in (whole[:-30], whole.replace(b"<i8", b"<i9"), b"PK", b""):
        path.write_bytes(damaged)
        with pytest.raises(HeedError):
            read_file(path)
    bomb = io.BytesIO()
    numpy.savez_compressed(bomb, **arrays | {"rewards": numpy.zeros(1 << 24)}, **ends)
    path.write_bytes(bomb.getvalue())
    with pytest.raises(InputError, match="bytes when unpacked"):
        read_file(path)


@pytest.mark.parametrize("name", [*WALKS])
def test_a_walk_depends_on_its_seed_alone(name: str) -> None:
    """And what it gives is of its spaces, and ends in time."""
    world = environment(name)
    several = random_episodes(name, [3, 4, 5])
    assert same(several[1:2], random_episodes(name, [4]))
    assert not same(several[1:2], several[2:])
    for each in several:
        assert 0 < len(each) <= world.longest
        assert world.observations.holds(each.observations)
        assert world.actions.holds(each.actions)


def test_a_door_opens_with_a_key() -> None:
    """An episode that walks to what it sees earns 1; one that does not take the key nothing, though the last room looks
    the same."""

    def towards(seen: list[float]) -> int:
        down, right = seen[4:6]
        return (0 if down < 0 else 1) if down else (2 if right < 0 else 3)

    with_key = play("key-to-door", range(20), lambda begun: [towards(each.observations[-1]) for each in begun])
    assert [each.total for each in with_key] == [1.0] * 20
    without = play(
        "key-to-door",
        range(20),
        lambda begun: [towards(each.observations[-1]) if each.observations[-1][2] else 0 for each in begun],
    )
    assert sum(each.total for each in without) < 10


def test_every_node_of_the_graph_leads_to_the_goal() -> None:
    graph = Graph()
    assert all(graph.ways[node][0] == (node + 1) % graph.NODES for node in range(graph.NODES))
    (episode,) = play("graph", [0], lambda begun: [0] * len(begun))
    assert episode.total in (-float(len(episode)), -2.0 * graph.longest)


def test_luck_earns_less_than_what_is_sure() -> None:
    sure, lucky = (play("bandit-walk", range(300), lambda begun, a=a: [a] * len(begun)) for a in (0, 1))
    assert {round(each.total, 4) for each in sure} == {round(6 * BanditWalk.SURE, 4)}
    assert sum(each.total for each in lucky) / 300 < 6 * BanditWalk.SURE / 1.5
    assert max(each.total for each in lucky) > 6 * BanditWalk.SURE


def test_an_environment_is_data() -> None:
    data = read_episodes("key-to-door:30")
    assert (len(data.train), data.name) == (30, "key-to-door:30")
    assert read_test_episodes("graph:5").keys() == {"test"}
    with pytest.raises(InputError, match="'many' is no number of episodes"):
        read_episodes("graph:many")


def test_a_tenth_is_held_out(tmp_path: Path) -> None:
    path = written(tmp_path, [STEP | {"rewards": [0, number]} for number in range(40)])
    data = read_episodes(path)
    assert (len(data.train), len(data.valid)) == (36, 4)
    assert {each.fingerprint for each in data.train}.isdisjoint(each.fingerprint for each in data.valid)
    assert len(read_test_episodes(path)["episodes.jsonl"]) == 40


def test_an_environment_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_environment("mymodule:Thing-v1")
    assert not is_environment("../Thing-v1")
    with pytest.raises(InputError, match="no environment is called 'key-door'") as caught:
        environment("key-door")
    assert "key-to-door" in caught.value.fix
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingError, match="gymnasium is not installed"):
        environment("CartPole-v1")
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(MissingError, match="Minari is not installed"):
        read_episodes("minari:mine/walks-v0")


def test_gymnasium() -> None:
    """Episodes are those of the library itself; actions that are vectors stay in their bounds."""
    gymnasium = pytest.importorskip("gymnasium")
    (episode,) = play("CartPole-v1", [7], lambda begun: [1] * len(begun))
    env, ends, seen, total = gymnasium.make("CartPole-v1"), False, [], 0.0
    observation, _ = env.reset(seed=7)
    while not ends:
        seen.append(observation.tolist())
        observation, reward, ended, cut, _ = env.step(1)
        total, ends = total + float(reward), ended or cut
    assert episode.total == total
    assert numpy.allclose(episode.observations, seen)
    pendulum = environment("Pendulum-v1")
    assert (pendulum.observations, pendulum.actions) == (Space("vector", 3), Space("vector", 1))
    pendulum.reset(0)
    assert pendulum.step([99.0])[1] == (pendulum.reset(0), pendulum.step([2.0]))[1][1]
    with pytest.raises(InputError, match="Nothing-v3"):
        environment("Nothing-v3")
    with pytest.raises(InputError, match="and vectors or whole numbers can be read"):
        environment("Blackjack-v1")


def test_minari(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its episodes have one observation more."""
    seen = numpy.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    each = [
        SimpleNamespace(observations=seen + n, actions=numpy.array([1, 0]), rewards=numpy.ones(2)) for n in range(9)
    ]
    data = SimpleNamespace(iterate_episodes=lambda: iter(each))
    monkeypatch.setitem(sys.modules, "minari", SimpleNamespace(load_dataset={"mine/walks-v0": data}.__getitem__))
    read = read_episodes("minari:mine/walks-v0")
    assert len(read.train) + len(read.valid) == 9
    assert read.train[0].observations.shape == (2, 2)
    with pytest.raises(MissingError, match="minari:none"):
        read_episodes("minari:none")


def test_rooms_follow_each_other() -> None:
    world = KeyToDoor()
    rooms = [world.reset(1)[:3], *(world.step(0)[0][:3] for _ in range(world.longest - 1))]
    seen = [room.index(1.0) for room in rooms]
    assert seen == sorted(seen)
    assert {*seen} == {0, 1, 2}
