"""A day of readings from four rooms, one of which gets too hot."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random

import smile

START = datetime(2026, 7, 1, tzinfo=UTC)
ROOMS = {1: "kitchen", 2: "study", 3: "attic", 4: "cellar"}
BASE = {1: 21, 2: 20, 3: 26, 4: 12}


def main() -> None:
    rng = Random(3)
    program = smile.compile(Path(__file__).with_name("sensors.mpl"))
    with smile.run(program) as house:
        house.publish_many("Rooms", [{"sensor": sensor, "room": room} for sensor, room in ROOMS.items()])
        readings = []
        for minute in range(0, 24 * 60, 10):
            for sensor in ROOMS:
                swing = Decimal(rng.randint(-300, 300)) / 100 + (4 if 12 * 60 <= minute < 18 * 60 else 0)
                at = START + timedelta(minutes=minute)
                readings.append({"sensor": sensor, "celsius": BASE[sensor] + swing, "at": at})
        house.publish_many("Readings", readings)
        house.settle()
        for row in house.rows("Stats"):
            room = ROOMS[row["sensor"]]
            print(f"{room:8} {row['readings']} readings, {row['low']} to {row['high']}, mean {row['mean']}")
        for row in house.rows("Alarms"):
            print(f"too hot: {row['room']} reached {row['high']}")


if __name__ == "__main__":
    main()
