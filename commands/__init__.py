"""What the commands of `tidings` do; `cli.py` names them and their options."""
