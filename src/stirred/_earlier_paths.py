"""Module paths that documentation of version 0.7 shows: found for one more version, with a warning that names today's.

An earlier module looks each name up in the module that has it now, so that both give the same object. Names that left a
package which still stands are found by :func:`stirred._lazy.lazy`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

NOW: Mapping[str, str] = {
    "stirred.audit": "stirred.lab.audit",
    "stirred.audit.auditing": "stirred.lab.audit.plan_audit",
    "stirred.audit.exact": "stirred.lab.audit.exact_loss",
    "stirred.audit.lower_bounds": "stirred.lab.audit.lower_bounds",
    "stirred.audit.noise_battery": "stirred.lab.audit.noise_audit",
    "stirred.audit.noise_laws": "stirred.lab.audit.laws",
    "stirred.audit.one_run": "stirred.lab.audit.lower_bounds",
    "stirred.audit.power": "stirred.lab.audit.swap_questions",
    "stirred.audit.programs": "stirred.lab.audit.programs",
    "stirred.audit.results": "stirred.lab.audit.results",
    "stirred.audit.survey_battery": "stirred.lab.audit.survey_audit",
    "stirred.audit.swap_battery": "stirred.lab.audit.swap_audit",
    "stirred.audit.topdown_battery": "stirred.lab.audit.topdown_audit",
    "stirred.audit.traces": "stirred.lab.audit.traces",
    "stirred.reports.limit_figures": "stirred.reports.limits_section",
    "stirred.reports.paper_figures": "stirred.reports.figures",
    "stirred.reports.releasing": "stirred.verbs",
    "stirred.reproduce": "stirred.lab.reproduce",
    "stirred.reproduce.page": "stirred.lab.reproduce.verdicts",
    "stirred.reproduce.semantics_figures": "stirred.lab.reproduce.paper_figures",
    "stirred.semantics.dependence": "stirred.lab.definitions.beliefs",
    "stirred.semantics.deployment_picture": "stirred.semantics.pictures.deployments",
    "stirred.semantics.guarantee_lines": "stirred.semantics.sentences.formatting",
    "stirred.semantics.prices": "stirred.lab.definitions.prices",
    "stirred.semantics.response_summary": "stirred.semantics.randomised_response",
    "stirred.semantics.responses": "stirred.semantics.randomised_response",
    "stirred.spec.accounts": "stirred.spec.known_deployments.accounts",
    "stirred.spec.allocations": "stirred.spec.known_deployments.allocations",
    "stirred.spec.deployments": "stirred.spec.known_deployments.deployments",
    "stirred.spec.finite": "stirred.spec.order.finite_mechanisms",
    "stirred.spec.swap_trade_off": "stirred.spec.order.swap_trade_off",
    "stirred.study": "stirred.lab.study",
    "stirred.study.study_file": "stirred.lab.study.study_file",
    "stirred.study.swappers": "stirred.lab.study.swappers",
    "stirred.survey.facts": "stirred.survey.plan.sensitivity",
    "stirred.survey.imputation_accounting": "stirred.survey.plan.imputation_kinds",
    "stirred.survey.linear_imputing": "stirred.survey.imputing",
    "stirred.survey.listed": "stirred.lab.sampling.enumerated",
    "stirred.survey.sensitivity": "stirred.survey.plan.sensitivity",
    "stirred.survey.settings": "stirred.survey.plan.settings",
    "stirred.swap.enumeration": "stirred.lab.definitions.swap_practices",
    "stirred.swap.practice_laws": "stirred.lab.definitions.swap_practices",
    "stirred.swap.practices": "stirred.lab.definitions.swap_practices",
    "stirred.topdown.nmf_reading": "stirred.topdown.noisy_files.reading",
}
"""By earlier path, the path of today."""


class _Earlier:
    """Finds and loads the modules of :data:`NOW`; asked last, when no file has the path."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in NOW:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, is_package=any(one.startswith(f"{name}.") for one in NOW))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Python makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        now = NOW[module.__name__]
        warnings.warn(f"{module.__name__} has moved: import from {now}", DeprecationWarning, stacklevel=2)
        module.__getattr__ = lambda name: getattr(import_module(now), name)  # type: ignore[method-assign]


def find_earlier_paths() -> None:
    """Let Python find the modules of :data:`NOW`."""
    if not any(isinstance(finder, _Earlier) for finder in sys.meta_path):
        sys.meta_path.append(_Earlier())
