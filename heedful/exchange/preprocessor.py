"""How a folder of the Hub prepares pictures, and the names of its labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.core.config import from_json, unknown_key
from heedful.data.images.files import RESAMPLE, Preparation
from heedful.errors import InputError
from heedful.exchange.hf.folder import read_object

PREPROCESSOR = "preprocessor_config.json"

_HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_EVERY = {"do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "crop_size": None}
# The defaults of each kind of processor. A size that is a single number is that of `edge`.
PROCESSORS: dict[str, dict[str, Any]] = {
    "ViT": _EVERY | _HALF | {"resample": 2, "size": 224, "do_center_crop": False, "edge": "height"},
    "DeiT": _EVERY | _HALF | {"resample": 3, "size": 256, "do_center_crop": True, "crop_size": 224, "edge": "height"},
    "CLIP": _EVERY
    | {
        "resample": 3,
        "size": 224,
        "do_center_crop": True,
        "crop_size": 224,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
        "edge": "shortest_edge",
    },
}
PROCESSORS["Segformer"] = (
    PROCESSORS["ViT"]
    | _IMAGENET
    | {
        "size": 512,
        "do_reduce_labels": False,  # in the training masks classes began at 1, and 0 was unknown
    }
)
PROCESSORS["Detr"] = (
    PROCESSORS["ViT"]
    | _IMAGENET
    | {
        "size": 800,
        "max_size": 1333,  # of the longer edge, where `size` is one number
        "edge": "shortest_edge",
        # for batches of pictures, and for boxes in training: pictures are read one by one here
        "do_convert_annotations": True,
        "do_pad": True,
        "format": "coco_detection",
        "pad_and_return_pixel_mask": True,
    }
)
# Keys about the library that wrote the file, and about the layout of its tensors.
IRRELEVANT = {
    "_processor_class",
    "data_format",
    "default_to_square",
    "device",
    "disable_grouping",
    "do_convert_rgb",
    "feature_extractor_type",
    "image_processor_type",
    "input_data_format",
    "processor_class",
    "reduce_labels",  # of old files: `read_segmenter` looks at it
    "return_tensors",
}


def read_preparation(folder: Path, *, channels: int) -> Preparation:
    """The preparation in the folder's preprocessor_config.json. Raises InputError for an unknown key or an unsupported
    value; MissingError or StorageError."""
    path = folder / PREPROCESSOR
    theirs = {key: value for key, value in read_object(path).items() if value is not None}
    kind = str(theirs.get("image_processor_type", theirs.get("feature_extractor_type")))
    kind = kind.removesuffix("Fast").removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
    if kind not in PROCESSORS:
        raise unknown_key(kind, [*PROCESSORS], where=f"{path}: image_processor_type")
    own = PROCESSORS[kind]
    for key in theirs:
        if key not in own and key not in IRRELEVANT:
            raise unknown_key(key, [*own, *IRRELEVANT], where=str(path))
    got = own | theirs
    resample = next((name for name, number in RESAMPLE.items() if number == got["resample"]), None)
    if resample is None:
        raise InputError(f"resample is {got['resample']!r}, expected a number from 0 to 5", where=str(path))
    size, crop = dict[str, Any](), list[Any]()
    if got["do_resize"]:
        size = _size(got["size"], own["edge"], longest=got.get("max_size"), where=f"{path}: size")
    if got["do_center_crop"]:
        crop = _size(got["crop_size"], "height", where=f"{path}: crop_size")["resize"]
    ours = {
        "channels": channels,
        **size,
        "crop": crop,
        "resample": resample,
        "factor": got["rescale_factor"] if got["do_rescale"] else 1.0,
        "mean": got["image_mean"] if got["do_normalize"] else [],
        "std": got["image_std"] if got["do_normalize"] else [],
    }
    made = from_json(Preparation, ours, str(path))  # checks the type of every value
    if made.crop and made.resize and min(made.resize) < max(made.crop):
        raise InputError(f"pictures of {made.resize} are cut to {made.crop}", where=str(path))
    return made


def _size(value: Any, edge: str, *, longest: Any = None, where: str) -> dict[str, Any]:
    """The fields of a size. `edge` and `longest`: the meaning of a single number."""
    if isinstance(value, int):
        edges = {"shortest_edge": value, "longest_edge": longest}
        value = edges if edge == "shortest_edge" else {"height": value, "width": value}
    match value:
        case {"height": rows, "width": columns, **rest} if not rest:
            return {"resize": [rows, columns]}
        case {"shortest_edge": shorter, **rest} if rest.keys() <= {"longest_edge"}:
            return {"resize": [shorter], "longest": rest.get("longest_edge")}
    raise InputError(f"{value!r} is no size, expected height and width, or shortest_edge", where=where)


def preprocessor(made: Preparation) -> dict[str, Any]:
    """The inverse of `read_preparation`."""
    kind = "ViT" if not made.crop else "CLIP" if len(made.resize) == 1 else "DeiT"
    whole = len(made.resize) == 2
    size = {"height": made.resize[0], "width": made.resize[1]} if whole else {"shortest_edge": sum(made.resize)}
    if made.longest is not None:
        size["longest_edge"] = made.longest
    crop = {"height": made.crop[0], "width": made.crop[1]} if made.crop else None
    return {
        "image_processor_type": f"{kind}ImageProcessor",
        "do_resize": bool(made.resize),
        **({"size": size} if made.resize else {}),
        "resample": int(RESAMPLE[made.resample]),
        "do_center_crop": crop is not None,
        **({} if crop is None else {"crop_size": crop}),
        "do_rescale": True,
        "rescale_factor": made.factor,
        "do_normalize": bool(made.mean or made.std),
        "image_mean": list(made.mean) or [0.0] * made.channels,
        "image_std": list(made.std) or [1.0] * made.channels,
        "do_convert_rgb": made.channels == 3,
    }


def hub_labels(said: Mapping[str, Any], n_classes: int) -> list[str]:
    names = said.get("id2label") or {str(i): f"LABEL_{i}" for i in range(n_classes)}
    return _numbered([str(names[key]) for key in sorted(names, key=int)])


def _numbered(names: Sequence[str]) -> list[str]:
    """Makes repeated names unique: ImageNet has two kinds of crane, and COCO calls every unused number N/A."""
    times = Counter(names)
    return [f"{name} ({i})" if times[name] > 1 else name for i, name in enumerate(names)]


def unnumbered(labels: Sequence[str]) -> list[str]:
    """The inverse of `_numbered`."""
    names = [label.removesuffix(f" ({i})") for i, label in enumerate(labels)]
    return names if _numbered(names) == [*labels] else [*labels]


def uncropped(made: Preparation, kind: str) -> dict[str, Any]:
    """The same as `preprocessor`, for a kind of processor that does not crop."""
    theirs = preprocessor(made) | {"image_processor_type": f"{kind}ImageProcessor"}
    del theirs["do_center_crop"]
    return theirs
