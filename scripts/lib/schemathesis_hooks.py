"""Changes to the generated requests, for scripts/schemathesis."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    """Shortens valid waits to 1 s, since they only take time. Invalid waits stay as they are."""
    wait = case.body.get("wait_seconds") if isinstance(case.body, dict) else None
    if isinstance(wait, (int, float)) and 1 < wait <= 60:
        case.body["wait_seconds"] = 1
