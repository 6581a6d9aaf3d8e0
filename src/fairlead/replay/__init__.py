"""Judges recorded steps again: with the policy in force, or with two policies, to see what differs.

Read the modules in this order:

- `records`: a record of the journal becomes a step again
- `sources`: journals and exported files, session by session, each in the order in which its steps began
- `sessions`: the clock, the sessions and the approver of a replay
- `policies`: a policy is loaded from a file, a folder or a revision of git
- `judge`: one policy answers one recorded step
- `memo`: equal steps are judged once, where all hooks are pure
- `shapes`: what is alike in the targets of two calls
- `report`: the result as data, for every output format
- `diff`: two policies judge the same steps
- `reproduce`: one policy judges the steps, and is compared with what was recorded
- `cases`: steps with what is expected of a policy, and records as such
- `coverage`: hooks that never fire, and why
- `mutation`: other spellings of the commands that a policy stops
- `published`: a result as rows that can be published
- `formats`: the rows as JUnit, SARIF, annotations, Markdown and HTML
- `accepted`: the changes that a human has accepted
- `shrinking`: the smallest command that still shows a difference

Nothing here writes to a journal, and nothing runs a hook's program unless the caller asks for it.
"""
