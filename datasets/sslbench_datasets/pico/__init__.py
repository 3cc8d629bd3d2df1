"""Participants, interventions and outcomes of clinical trials."""
