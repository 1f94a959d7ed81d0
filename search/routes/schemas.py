"""Requests and responses of the API with their limits and examples; the OpenAPI document is made of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from index.document import MAX_ID_BYTES
from search.feedback.list_ids import MAX_LENGTH
from search.ranking.rank import Mode, Scored

MAX_K, MAX_OFFSET, MAX_POINTS, MAX_SUGGESTIONS = 100, 1000, 300, 50
MAX_TEXT, MAX_PREFIX, MAX_ANCHORS, MAX_VALUES = 10_000, 200, 20, 50

LeftOut = Literal["too_many_sentences", "serving_down", "wrong_model", "busy"] | None

Id = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_BYTES)]
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT)]
Values = Annotated[list[Annotated[str, StringConstraints(max_length=4096)]], Field(max_length=MAX_VALUES)]
Anchors = Annotated[list[Id], Field(max_length=MAX_ANCHORS)]

RYANAIR: JsonDict = {
    "id": "ryanair",
    "name": "Ryanair",
    "description": "Budget travellers in Europe know this Dublin carrier for rock-bottom fares.",
    "sector": "Industrials",
    "industry": "airlines",
    "country": "Ireland",
    "website": "https://www.ryanair.com",
    "tags": ["low-cost", "short-haul"],
    "updated_at": "2026-01-31T09:30:00Z",
}


class Asked(BaseModel):
    """A misspelt field is told, and not silently left out."""

    model_config = ConfigDict(extra="forbid")


class Company(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [RYANAIR]})

    id: str
    name: str
    description: str
    sector: str
    industry: str
    country: str
    website: str
    tags: list[str]
    updated_at: str | None = Field(description="RFC 3339; null where the record has no time")


class Span(BaseModel):
    """A sentence. `start` and `end` count Unicode characters (code points), not UTF-16 units."""

    text: str
    start: int
    end: int
    id: str | None = Field(description="the company whose description it is from; null: the query's text")


class Why(BaseModel):
    score: float = Field(description="cosine of the two sentences")
    mine: Span = Field(description="from the anchor, or from the query")
    theirs: Span = Field(description="from the company found")


class Hit(BaseModel):
    company: Company
    score: float
    rank: int = Field(description="from 1, across pages")
    why: list[Why] | None = Field(description="closest sentences; null where not asked for, or not to be had now")


class Found(BaseModel):
    hits: list[Hit]
    model: str = Field(description="fingerprint of the model that made the vectors")
    scored_by: Scored = Field(description="what `score` is: a cosine, or a score of the words in common")
    total_known: int | None = Field(description="how many there are, where the list came to its end")
    shown: str = Field(description="names this list in feedback, for seven days")
    why_left_out: LeftOut = Field(
        None,
        description="what kept reasons, or the sentences they are looked for in, out of `why`; null: nothing did",
    )


class Similar(Found):
    anchor: Company


class Choice(Asked):
    """Any of the values within a field, all of the fields that have some."""

    sector: Values = []
    industry: Values = []
    country: Values = []
    tags: Values = []


class SearchQuestion(Asked):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "cheap flights in Europe", "filters": {"country": ["Ireland", "Hungary"]}, "k": 10},
                {"like": ["ryanair", "easyjet"], "unlike": ["lufthansa"], "mode": "vector", "why": True},
            ]
        }
    )

    text: Text | None = None
    like: Anchors = []
    unlike: Anchors = []
    filters: Choice = Choice()
    mode: Mode = "hybrid"
    k: Annotated[int, Field(ge=1, le=MAX_K)] = 10
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = 0
    why: bool = False

    @model_validator(mode="after")
    def _something_to_look_for(self) -> SearchQuestion:
        typed = bool(self.text and self.text.strip())
        if self.mode == "words" and not typed:
            raise ValueError("mode words needs a text")
        if not typed and not self.like:
            raise ValueError("give a text or companies to be like")
        return self


class MapQuestion(SearchQuestion):
    k: Annotated[int, Field(ge=1, le=MAX_POINTS)] = 100


class Suggestion(BaseModel):
    id: str
    name: str


class Suggestions(BaseModel):
    suggestions: list[Suggestion]


class FacetValue(BaseModel):
    value: str
    count: int


class Facets(BaseModel):
    facets: dict[str, list[FacetValue]]


class Point(BaseModel):
    id: str
    name: str
    sector: str
    x: float = Field(ge=-1, le=1)
    y: float = Field(ge=-1, le=1)
    score: float


class Map(BaseModel):
    points: list[Point]
    anchor: str | None = Field(description="the company the map is drawn around, among the points")


class FeedbackGiven(Asked):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "shown": "the `shown` of the list that was answered",
                    "anchor": "ryanair",
                    "candidate": "easyjet",
                    "answer": "similar",
                    "rank": 1,
                }
            ]
        }
    )

    shown: Annotated[str, StringConstraints(min_length=1, max_length=MAX_LENGTH)]
    anchor: Id | None = None
    text: Text | None = None
    candidate: Id
    answer: Literal["similar", "not_similar", "undo"]
    rank: Annotated[int, Field(ge=1, le=MAX_OFFSET + MAX_K)]


class Status(BaseModel):
    model: str
    dimension: int
    companies: int
    newest_record: str | None
    index: str
    serving: bool


class Readiness(BaseModel):
    """`ok`, or what is wrong, in words."""

    ready: bool
    index: str
    serving: str
    model: str | None = Field(description="null while index and endpoint cannot be compared")
    index_model: str | None = Field(description="the model that made the index's vectors")
    served_models: list[str] = Field(description="what the endpoint can be asked for, the newest first")


class ProblemDetail(BaseModel):
    code: str
    message: str
    fix: str | None = None


class Problem(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error": {"code": "not_found", "message": "There is no company 'x'."}}]}
    )

    error: ProblemDetail
