"""Translation of sentences, learnt from pairs (Vaswani et al. 2017; Bahdanau et al. 2015).

`train`, `use` and `cli` are as in every task: the job, the model in use, and the commands. Their parts are

- `training`: epochs, losses, pairs that models write, and the model card;
- `searching`, `wishes`, `capitals` and `confidence`: the search, words that a translation must or must not have, texts
  in capitals, how sure a translation is;
- `documents`: texts longer than a sentence, and files; `pairs`: given translations; `inside`: looking inside a model;
- `languages`: directions and kinds of translations; `exchange`: other libraries, and the Hub.
"""

from heedful.run.task import Inside, Lazy, Task, TrainOption

TRANSLATE = Task(
    name="translate",
    data="pairs of sentences",
    does="translates texts",
    example="My sister buys three apples.",
    headline=("bleu",),
    recipe=Lazy("heedful.tasks.translate.recipe:TranslateRecipe"),
    job=Lazy("heedful.tasks.translate.train:TranslateJob"),
    batch=Lazy("heedful.tasks.shared.shapes:of_pairs"),
    train_options={
        "source": TrainOption("data.source", "language, column or key to translate from"),
        "target": TrainOption("data.target", "language, column or key to translate to"),
        "valid": TrainOption("data.valid", "a file to validate on; of two languages two", metavar="PATH", several=True),
        "test": TrainOption("data.test", "a file to test on; of two languages two", metavar="PATH", several=True),
        "mix": TrainOption(
            "data.mix",
            "general pairs against forgetting; PATH:0.2 is where a fifth of each epoch is drawn from",
            metavar="PATH:SHARE",
            several=True,
        ),
        "synthetic": TrainOption(
            "data.synthetic",
            "pairs that models wrote, to train on beside the data; may have a weight",
            metavar="PATH",
            several=True,
        ),
    },
    tuned=Lazy("heedful.tasks.translate.training.tuning:tuned"),
    suited=Lazy("heedful.tasks.translate.training.tuning:suited"),
    lesson=Lazy("heedful.tasks.translate.training.distil:lesson"),
    lesson_options=Lazy("heedful.tasks.translate.options:TeachingOptions"),
    prepares=Lazy("heedful.tasks.translate.training.prepared:preparation"),
    served=Lazy("heedful.tasks.translate.use:Translator"),
    asks={
        "translate": Lazy("heedful.tasks.translate.records:ASK"),
        "fragment": Lazy("heedful.tasks.translate.documents.fragments:ASK"),
        "passage": Lazy("heedful.tasks.translate.documents.questions:ASK"),
        "align": Lazy("heedful.tasks.translate.inside.words:ASK"),
        "score": Lazy("heedful.tasks.translate.pairs.weigh:ASK"),
        "steps": Lazy("heedful.tasks.translate.inside.steps:ASK"),
    },
    facts=Lazy("heedful.tasks.translate.records:translator_facts"),
    laws=Lazy("heedful.tasks.translate.laws:translator_laws"),
    evaluate=Lazy("heedful.tasks.translate.scoring:score_translator"),
    eval_options=Lazy("heedful.tasks.translate.options:TranslationScoring"),
    inside=Inside(
        look=Lazy("heedful.tasks.translate.inside.look:look_translating"),
        options=Lazy("heedful.tasks.translate.options:TranslationLook"),
        attention=Lazy("heedful.tasks.translate.inside.look:attention_translating"),
        feed=Lazy("heedful.tasks.translate.inside.feed:feed_translator"),
    ),
    languages=Lazy("heedful.tasks.translate.spec:languages_of"),
    directions=Lazy("heedful.tasks.translate.spec:directions_of"),
    renamed=Lazy("heedful.tasks.translate.training.card:renamed"),
    embedder=Lazy("heedful.tasks.shared.embed:TextEncoder"),
    hub=Lazy("heedful.tasks.translate.exchange.hub:HUB"),
    hub_kind="seq2seq",
    engines={
        "ctranslate2": Lazy("heedful.tasks.translate.exchange.ctranslate2:ENGINE"),
        "onnx": Lazy("heedful.tasks.translate.exchange.onnx:ENGINE"),
    },
    commands=Lazy("heedful.tasks.translate.cli:COMMANDS"),
    fitted={"confidence.json": "heed eval {run} --data DATA --calibrate"},
)
