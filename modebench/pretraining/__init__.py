"""How the tiny policy is made: its tokenizer, what it reads, the loop, and its model card."""
