"""The lecture lab: every number, picture and experiment of five lecture decks on attention, as something that runs.

`deck.yaml` has what the decks say, under the id of each exhibit; a function shows what comes out beside it.
"""

from heedful.lab.exhibit import Exhibit
from heedful.run.task import Lazy

# One exhibit an id of deck.yaml; a function may show several. In the order in which they are listed.
EXHIBITS: dict[str, Lazy[Exhibit]] = {
    "N1": Lazy("heedful.lab.numbers.five_queries:five_queries"),
    "N2": Lazy("heedful.lab.numbers.five_queries:masked_queries"),
    "N3": Lazy("heedful.lab.numbers.five_queries:two_queries"),
}
