"""What the terminal, a server and Python all call: plain records come out."""
