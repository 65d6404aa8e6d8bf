"""Aliases that a reader of one real paper accepted, for tests on real data.

Each predicted name with the names of the truth that it covers: the first one is the
single target, and all of them are the target set.
"""

from __future__ import annotations

from collections.abc import Mapping

HC1 = "Hc1 at 0 K for single crystal for H //"
HC2 = "Hc2 at 0 K for single crystal for H //"
SLOPE = "-slope in Hc2 vs T at Tc for single crystal for H //"
LENGTH = "coherence length at 0 K for single crystal for H "
DEPTH = "penetration depth at 0 K for single crystal for H"
WARM = "resistivity at RT for single crystal for J//"
COLD = "resistivity at 4.2 K for single crystal for J//"
GAP = "normarized energy gap at 0 K , 2delta(0)/kTc"
HEAT = "coefficient of electronic specific heat"

REVIEWED: Mapping[str, tuple[str, ...]] = {
    "structure prototype": ("common name of structure",),
    "superconducting transition temperature Tonset": (
        "Tc from susceptibility measurement",
    ),
    "superconducting transition temperature Tc": ("Tc (of this sample) recommended",),
    "Debye temperature ΘD": ("Debye temperature",),
    "Sommerfeld constant γ": (HEAT,),
    "Sommerfeld coefficient γ": (HEAT,),
    "superconducting energy gap Δ(0)": ("energy gap at 0 K , delta(0)",),
    "BCS gap ratio 2Δ(0)/(kB Tc)": (GAP,),
    "gap ratio 2Δ(0)/(kB Tc)": (GAP,),
    "lower critical field Hc1(0)": (f"{HC1}c-axis", f"{HC1}ab-plane"),
    "upper critical field Hc2(0)": (f"{HC2}c-axis", f"{HC2}ab-plane"),
    "upper critical field Hc2(0) (GL)": (f"{HC2}c-axis", f"{HC2}ab-plane"),
    "dHc2/dT slope": (f"{SLOPE}c-axis", f"{SLOPE}ab-plane"),
    "coherence length ξ(0)": (f"{LENGTH}//ab-plane", f"{LENGTH}⊥ab-plane"),
    "coherence length ξ_GL(0)": (f"{LENGTH}//ab-plane", f"{LENGTH}⊥ab-plane"),
    "penetration depth λ(0)": (f"{DEPTH} //ab-plane", f"{DEPTH}⊥ab-plane"),
    "penetration depth λ_GL(0)": (f"{DEPTH} //ab-plane", f"{DEPTH}⊥ab-plane"),
    "room temperature resistivity ρ(300K)": (f"{WARM}ab-plane", f"{WARM}c-axis"),
    "residual resistivity ρ(res)": (f"{COLD}ab-plane", f"{COLD}c-axis"),
}
