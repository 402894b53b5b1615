"""Brokers side by side: the same loads on Ottla and on its peers, in turn, and how they compare within a round."""
