"""What a swap is asked to do, and what follows from that: its fields, a draft, its guarantee, a rate that keeps a
budget."""
