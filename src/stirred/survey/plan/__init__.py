"""What a survey release is asked to do, and what follows from that before any record is read."""
