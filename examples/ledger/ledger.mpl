-- A bank: money moves between accounts, and none is made or lost.

stream Accounts (account int, owner text) unique account;
stream Transfers (payer int, payee int, amount decimal(12,2)[0.01..]);

view Paid = from Transfers |> aggregate paid := sum(amount) group by payer;
view Received = from Transfers |> aggregate received := sum(amount) group by payee;
view Balances = from Accounts
  |> left join Paid on account = Paid.payer default paid := 0
  |> left join Received on account = Received.payee default received := 0
  |> extend balance := received - paid
  |> project account, owner, balance;
view Total = from Balances |> aggregate total := sum(balance);

-- Consistent cuts: both sides of every transfer, or neither.
subscribe audit to Total emit as of horizon;
subscribe balances to Balances;
