"""Tables and transactions.

Every function takes the connection first, opens none, and may be called again with the same answer.
"""
