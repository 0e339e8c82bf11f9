"""Money changes hands at random; an auditor looks at every consistent state."""

from pathlib import Path
from random import Random

import smile

ACCOUNTS = 5
TRANSFERS = 200


def main() -> None:
    rng = Random(7)
    program = smile.compile(Path(__file__).with_name("ledger.mpl"))
    with smile.run(program) as bank:
        for account in range(ACCOUNTS):
            bank.publish("Accounts", {"account": account, "owner": f"owner {account}"})
        with bank.subscribe("audit") as audit:
            for _ in range(TRANSFERS):
                payer, payee = rng.sample(range(ACCOUNTS), 2)
                bank.publish(
                    "Transfers",
                    {"payer": payer, "payee": payee, "amount": f"{rng.randint(1, 100)}.{rng.randint(10, 99)}"},
                )
            bank.settle()
            seen = [change.row["total"] for change in audit.ready() if change.row is not None]
        for row in bank.rows("Balances"):
            print(f"{row['owner']}: {row['balance']:>9}")
        print(f"the auditor looked more than a hundred times: {len(seen) > TRANSFERS // 2}")
        print(f"and saw only these totals: {sorted(set(map(str, seen)))}")


if __name__ == "__main__":
    main()
