"""The functions that the terminal, the server and Python all call; they return plain records."""
