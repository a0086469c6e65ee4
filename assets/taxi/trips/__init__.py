"""Trip records of the New York City Taxi and Limousine Commission (TLC), from files to tables.

One way in for yellow and green (`records`), named rules for what real records look like (`rules`),
and published tables by zone, hour, payment and local day (`streams` lists them all).
"""
