"""A small shop: six orders meet payments in parts, shipments and a cancellation."""

from pathlib import Path

import smile


def main() -> None:
    program = smile.compile(Path(__file__).with_name("orders.mpl"))
    with smile.run(program) as shop:
        amounts = {1: "10.00", 2: "25.50", 3: "99.90", 4: "5.00", 5: "40.00", 6: "12.00"}
        for number, amount in amounts.items():
            shop.publish("Orders", {"id": number, "customer": f"customer {number % 3}", "amount": amount})
        for order, paid in ((1, "10.00"), (2, "20.00"), (3, "99.90"), (2, "5.50"), (5, "39.99"), (6, "12.00")):
            shop.publish("Payments", {"order_id": order, "paid": paid})
        shop.publish("Shipments", {"order_id": 1, "carrier": "bike"})
        shop.publish("Cancellations", {"order_id": 6, "reason": None})
        shop.settle()
        for view in ("Unpaid", "ToShip", "Delivered"):
            print(f"{view}:")
            for row in shop.rows(view):
                print("  " + ", ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
