"""Edits: corrections by a user, as data. A run with the same edits gives the same result, also with other networks."""

from pose.results.edits.files import given_edits as given_edits
from pose.results.edits.files import parse_edits as parse_edits
from pose.results.edits.files import read_edits as read_edits
from pose.results.edits.files import to_json as to_json
from pose.results.edits.files import write_edits as write_edits
from pose.results.edits.types import Edit as Edit
from pose.results.edits.types import Place as Place
