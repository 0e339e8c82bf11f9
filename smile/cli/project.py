"""The files of a new project: what `smile init` writes. `{name}` is the project's."""

from __future__ import annotations

PROGRAM = """\
-- What a chain of shops has left of each product: what was delivered less what was sold.

stream Deliveries (product enum('apples', 'bread', 'milk', 'soap', 'tea'), pieces int[1..1000]);
stream Sales (
  shop text,
  product enum('apples', 'bread', 'milk', 'soap', 'tea'),
  pieces int[1..100],
  price decimal(8,2)[0..500]
);

view Delivered = from Deliveries |> aggregate came := sum(pieces) group by product;
view Sold = from Sales |> aggregate went := sum(pieces), earned := sum(price) group by product;
view Stock = from Delivered
  |> left join Sold using product default went := 0, earned := 0.00
  |> extend stock := came - went;

subscribe stock to Stock emit bounds;
"""

CONFIG = """\
# Where this program runs. `smile run {name}.mpl` needs none of it: it starts brokers on this machine.
# With `smile broker one`, `smile broker two` in two terminals and then `smile deploy`, this file is what counts.

program = "{name}.mpl"

[brokers.one]
address = "tcp://127.0.0.1:7070"
http = "127.0.0.1:8070"
data = "data/one"

[brokers.two]
address = "tcp://127.0.0.1:7071"
data = "data/two"

[log]
sync = "always"        # acknowledged means on disk; "interval" and "never" are faster and promise less
keep = "all"           # "checkpoint" trims what every checkpoint includes

[checkpoint]
every = "10 s"
"""

GENERATOR = '''\
"""Events to try the program with, as JSON lines: python generate.py Sales --count 1000 | smile publish Sales"""

import argparse
import json
import random
import time

PRODUCTS = ("apples", "bread", "milk", "soap", "tea")
SHOPS = ("north", "south", "west")


def event(stream: str, rng: random.Random) -> dict[str, object]:
    if stream == "Deliveries":
        return {"product": rng.choice(PRODUCTS), "pieces": rng.randint(100, 1000)}
    return {
        "shop": rng.choice(SHOPS),
        "product": rng.choice(PRODUCTS),
        "pieces": rng.randint(1, 5),
        "price": f"{rng.randint(50, 2000) / 100:.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stream", choices=("Deliveries", "Sales"))
    parser.add_argument("--count", type=int, default=100, help="how many events; 0 = without end")
    parser.add_argument("--rate", type=float, default=0.0, help="events per second; 0 = as fast as possible")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    made = 0
    while not given.count or made < given.count:
        print(json.dumps(event(given.stream, rng)), flush=given.rate > 0)
        made += 1
        if given.rate:
            time.sleep(1 / given.rate)


if __name__ == "__main__":
    main()
'''

README = """\
# {name}

A SMILE program: `{name}.mpl` says which events there are and which views follow from them.

Start it, and leave it running:

    smile run {name}.mpl --brokers 2

In another terminal, in this folder:

    python generate.py Deliveries | smile publish Deliveries
    smile query Stock
    python generate.py Sales --count 0 --rate 20 | smile publish Sales --quiet

And in a third one, watch the stock fall, then kill a broker and watch it being true all the same:

    smile subscribe stock
    smile fault kill b2
    smile status

`smile explain {name}.mpl` says what every column promises; `smile --help` has the rest.
"""

GITIGNORE = """\
.smile/
data/
keys/*.secret
"""


def project_files(name: str) -> dict[str, str]:
    return {
        f"{name}.mpl": PROGRAM,
        "smile.toml": CONFIG.replace("{name}", name),
        "generate.py": GENERATOR,
        "README.md": README.replace("{name}", name),
        ".gitignore": GITIGNORE,
    }
