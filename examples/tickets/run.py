"""Two coasts buy tickets of the same items; the view shows what is left, and every answer on the way was true."""

from pathlib import Path
from random import Random

import smile

ITEMS = {1: 60, 2: 500, 3: 45}


def main() -> None:
    rng = Random(1)
    program = smile.compile(Path(__file__).with_name("tickets.mpl"))
    with smile.run(program) as office:
        for item, qty in ITEMS.items():
            office.publish("Sellers", {"item_id": item, "price": f"{10 * item}.50", "qty": qty})
        with office.subscribe("Available") as available:
            for _ in range(100):
                coast = rng.choice(("BuyersWest", "BuyersEast"))
                office.publish(coast, {"item_id": rng.choice(list(ITEMS)), "qty": rng.randint(1, 4)})
            office.settle()
            shown: dict[int, list[int]] = {item: [] for item in ITEMS}
            for change in available.ready():
                if change.row is not None:
                    shown[change.row["item_id"]].append(change.row["avail"])
        for row in office.rows("Available"):
            print(f"item {row['item_id']} at {row['price']}: {row['avail']} left")
        falling = all(values == sorted(values, reverse=True) for values in shown.values())
        print(f"what was shown only ever fell: {falling}")


if __name__ == "__main__":
    main()
