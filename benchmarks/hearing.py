"""A model with a decoder, and transformers' Whisper of the same weights: whether both write the same, and how fast.

    python -m benchmarks.hearing RUN TABLE.csv

Both write greedily, 16 files at once, with one thread, in turns; the time is the processor's, from samples to texts.
Reading files, and the first round, which is not counted, are left out.
"""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from transformers import AutoFeatureExtractor, AutoModelForSpeechSeq2Seq, AutoTokenizer

from heedful.data.sound.files import RATE, Sounds
from heedful.data.sound.utterances import read_test_utterances
from heedful.tasks.transcribe.use import Transcriber
from heedful.verbs.exchange import export_model

TOGETHER, ROUNDS = 16, 3


def main(run: Path, table: Path) -> None:
    torch.set_num_threads(1)
    ((_, part),) = read_test_utterances(table).items()
    sounds = [*Sounds([row.file for row in part])]
    batches = [sounds[first : first + TOGETHER] for first in range(0, len(sounds), TOGETHER)]
    ours = Transcriber.load(run)
    with tempfile.TemporaryDirectory() as folder:
        export_model(run, Path(folder) / "hub")
        theirs = AutoModelForSpeechSeq2Seq.from_pretrained(Path(folder) / "hub").eval()
        features, tokenizer = (
            kind.from_pretrained(Path(folder) / "hub") for kind in (AutoFeatureExtractor, AutoTokenizer)
        )

    @torch.inference_mode()
    def written_by_them() -> list[str]:
        texts = list[str]()
        for batch in batches:
            heard = features([sound.numpy() for sound in batch], sampling_rate=RATE, return_tensors="pt").input_features
            texts += tokenizer.batch_decode(theirs.generate(input_features=heard), skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]

    def written() -> list[str]:
        return [text for batch in batches for text in ours.texts(batch)]

    seconds: dict[str, list[float]] = {"heedful": [], "transformers": []}
    for _ in range(1 + ROUNDS):
        texts = list[list[str]]()
        for name, write in zip(seconds, (written, written_by_them), strict=True):
            begin = time.process_time()
            texts.append(write())
            seconds[name].append(time.process_time() - begin)
    same = sum(one == other for one, other in zip(*texts, strict=True))
    print(f"{same} of {len(sounds)} texts are the same")
    for name, taken in seconds.items():
        print(f"{name}: {median(taken[1:]):.2f} s ({min(taken[1:]):.2f} to {max(taken[1:]):.2f})")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
