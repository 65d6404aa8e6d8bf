"""The batch endpoints of the simulated server, in OpenAI's form and in Anthropic's.

Both forms are two views of the same batches: what a batch goes through stands in
`state`, who keeps them in `office`, what they look like on the wire in `openai_form`
and `anthropic_form`, and HTTP in `serving`. All of it is kept in memory.
"""
