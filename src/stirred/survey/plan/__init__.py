"""What a survey release is asked to do, and what follows from that before any record is read."""

from stirred._lazy import lazy

__getattr__, __dir__ = lazy(__name__, moved={"stirred.survey.plan.fields": "SurveyPlan"})
