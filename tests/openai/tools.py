"""Client-side functions through the unmodified `openai` package: called, answered, streamed.

  tools.py ADDRESS KEY

The server's language model is generator.py.
"""

import json
import sys

import openai

MESSAGES = [{"role": "user", "content": "Where do visitors park, and how warm is it?"}]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": CITY, "strict": True}}


def weather(call):
    assert call.function.name == "weather", call
    assert json.loads(call.function.arguments) == {"city": "Paris"}, call
    return {"role": "tool", "tool_call_id": call.id, "content": "21"}


def main():
    address, key = sys.argv[1:]
    client = openai.OpenAI(base_url=address + "/v1", api_key=key, max_retries=0)
    first = client.chat.completions.create(
        model="acme", messages=MESSAGES, tools=[TOOL], parallel_tool_calls=False
    )
    choice = first.choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content is None, choice
    (call,) = choice.message.tool_calls
    told = [*MESSAGES, choice.message, weather(call)]
    second = client.chat.completions.create(model="acme", messages=told, tools=[TOOL])
    message = second.choices[0].message
    assert message.content == "It is 21 degrees. Level 1 is for visitors [1].", message
    assert message.annotations[0].url_citation.title == "parking", message
    with client.chat.completions.stream(model="acme", messages=MESSAGES, tools=[TOOL]) as stream:
        final = stream.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls", final
    assert weather(final.message.tool_calls[0])["content"] == "21"
    free = client.chat.completions.create(
        model="acme", messages=MESSAGES, tools=[TOOL], tool_choice="none"
    )
    assert free.choices[0].message.content == "Visitors park on level 1 [1].", free
    print(f"openai {openai.__version__}: tools passed")


main()
