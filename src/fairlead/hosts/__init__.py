"""Hosts: where steps come from and decisions are carried out."""
