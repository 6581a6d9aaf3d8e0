"""The wire: steps, verdicts and decisions as JSON, and the JSON Schemas of each."""

from .schemas import envelope_schema, schemas, verdict_schema
from .steps import decode_step, encode_step, envelope

__all__ = ["decode_step", "encode_step", "envelope", "envelope_schema", "schemas", "verdict_schema"]
