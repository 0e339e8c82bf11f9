-- Orders, payments, shipments: what is still open, and why?

stream Orders (id int, customer text, amount decimal(10,2)[0.00..]) unique id;
stream Payments (order_id int, paid decimal(10,2)[0.00..]);
stream Shipments (order_id int, carrier enum('van', 'bike', 'drone')) unique order_id;
stream Cancellations (order_id int, reason text null) unique order_id;

view Paid = from Payments |> aggregate paid := sum(paid) group by order_id;
view Live = from Orders |> not matching Cancellations on id = Cancellations.order_id;
view Unpaid = from Live
  |> left join Paid on id = Paid.order_id default paid := 0
  |> where paid < amount
  |> project id, customer, amount, paid;
view ToShip = from Live
  |> join Paid on id = Paid.order_id
  |> where paid >= amount
  |> not matching Shipments on id = Shipments.order_id
  |> project id, customer;
view Delivered = from Orders
  |> join Shipments on id = Shipments.order_id
  |> project id, customer, carrier;

subscribe to_ship to ToShip;
