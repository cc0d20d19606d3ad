"""What scripts/schemathesis changes about generated requests."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    """A wait of up to 60 s is valid and only takes time. Longer ones, negative ones and other types stay as they are."""
    wait = case.body.get("wait_seconds") if isinstance(case.body, dict) else None
    if isinstance(wait, (int, float)) and 1 < wait <= 60:
        case.body["wait_seconds"] = 1
