"""The languages of many texts at once: what py3langid's model (Lui and Baldwin 2012) holds of each, by numpy.

B = texts, L = bytes of the longest, F = features (runs of bytes that the model counts), C = languages.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int32
from scipy.sparse import csr_array

LONGEST = 2000  # bytes: texts that are longer are not walked beside others
BATCH = 1024  # texts: all features of all of them have a number in 31 bits


class LanguageBatches:
    """The model of an identifier of py3langid, whose `classify` it agrees with but for how the sums are rounded."""

    def __init__(self, identifier: Any) -> None:
        codes = identifier.nb_classes
        self.codes: list[str] = list(dict.fromkeys(codes))
        self.columns = [self.codes.index(code) for code in codes]  # a language in two scripts has two
        self.weights = np.asarray(identifier.nb_ptc, np.float32)  # F x C
        self.prior = np.asarray(identifier.nb_pc, np.float32)
        # An automaton over bytes: the states that follow, 256 a row; the row of each state; what it counts, or -1.
        self.following = np.asarray(identifier.tk_nextmove)
        self.row = np.asarray(identifier.tk_row, np.uint32) << 8
        self.feature = np.asarray(identifier.tk_output, np.int32)

    def classify(self, texts: Sequence[str]) -> list[tuple[str, float] | None]:
        """The likeliest language of each text, and its probability; None of a text that is too long for this."""
        encoded = [_encoded(text) for text in texts]
        fitting = sorted((i for i, own in enumerate(encoded) if len(own) <= LONGEST), key=lambda i: -len(encoded[i]))
        found: list[tuple[str, float] | None] = [None] * len(texts)
        for at in range(0, len(fitting), BATCH):
            batch = fitting[at : at + BATCH]
            probabilities = self._probabilities([encoded[i] for i in batch])
            best = probabilities.argmax(axis=1)
            sure = probabilities[np.arange(len(batch)), best]
            for i, code, probability in zip(batch, best.tolist(), sure.tolist(), strict=True):
                found[i] = self.codes[code], probability
        return found

    def _probabilities(self, texts: Sequence[bytes]) -> Float[np.ndarray, "B C"]:
        """Of texts in the order of their lengths, the longest first."""
        counted = self._counted(self._features(texts))
        scores = counted @ self.weights + self.prior
        scores /= np.sqrt([[len(text) or 1] for text in texts], dtype=np.float32)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        joined = np.zeros((len(texts), len(self.codes)), np.float32)
        for column, scored in zip(self.columns, scores.T, strict=True):
            joined[:, column] += scored
        return joined

    def _features(self, texts: Sequence[bytes]) -> Int32[np.ndarray, "L B"]:
        """What the automaton counts at each byte of each text; -1 where that is nothing."""
        lengths = np.array([len(text) for text in texts])
        longest = int(lengths[0])
        padded = np.frombuffer(b"".join(text.ljust(longest, b"\0") for text in texts), np.uint8)
        read = np.ascontiguousarray(padded.reshape(len(texts), longest).T)
        features = np.full((longest, len(texts)), -1, np.int32)
        states = np.zeros(len(texts), self.following.dtype)
        left = np.searchsorted(-lengths, -np.arange(longest))  # texts that have such a byte
        for position, count in enumerate(left.tolist()):
            states = self.following[self.row[states[:count]] + read[position, :count]]
            features[position, :count] = self.feature[states]
        return features

    def _counted(self, features: Int32[np.ndarray, "L B"]) -> "csr_array[Any, Any]":
        """log(1 + n) of the n times that each text has each feature: B x F, sparse."""
        numbers = features + np.arange(features.shape[1], dtype=np.int32) * len(self.weights)
        has = np.sort(numbers[features >= 0])
        first = np.flatnonzero(np.diff(has, prepend=-1))
        counts = np.diff(first, append=len(has))
        text, feature = np.divmod(has[first], len(self.weights))
        begins = np.searchsorted(text, np.arange(features.shape[1] + 1))
        shape = features.shape[1], len(self.weights)
        return csr_array((np.log1p(counts, dtype=np.float32), feature, begins), shape=shape)


def _encoded(text: str) -> bytes:
    """As py3langid reads it."""
    read = unicodedata.normalize("NFC", text.lower() if text.isupper() else text)
    return read.encode("utf-8", "surrogatepass")
