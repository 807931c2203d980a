# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The examples of docs/protocol.md, whose notation is described there.

    protocol_examples.py block KIND FILE     print its only block of that kind, as yaml
    protocol_examples.py run FILE SOCKET     run its examples, against that Unix socket and the other
                                             addresses of the configuration
    protocol_examples.py commands FILE       the commands that have an example, one a line
    protocol_examples.py routes FILE         the same, of routes

`run` prints one line for each example: "ok" or "not ok", a tab, its name, and where it failed another
tab and why, with \\n for an end of line.
"""
import http.client
import json
import re
import shlex
import socket
import sys

PATIENCE_S = 30
NAME = re.compile(r"\$([a-z_]+)")


class Example:
    """A fenced block: pairs of lines that are sent and lines that come back."""

    def __init__(self, line, words):
        self.line = line
        self.kind = words[0]
        self.is_tcp = "tcp" in words
        self.exchanges = []

    def add(self, text):
        sent, came = (self.exchanges or [(None, None)])[-1]
        if text.startswith(">"):
            # Each RESP line is a command; an HTTP request has several lines.
            if sent is None or came or self.kind == "resp":
                sent = []
                self.exchanges.append((sent, []))
            sent.append(text[2:])
        elif text.startswith("<") and sent:
            came.append(text[2:])
        else:
            raise SystemExit(f"line {self.line}: neither > nor <: {text}")

    def title(self):
        return self.exchanges[0][0][0] if self.exchanges else "nothing"


def read_blocks(path):
    """Its fenced blocks: (line, words after the fence, lines)."""
    block = None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            if block is None and line.startswith("```"):
                block = (number, line[3:].split(), [])
            elif block is not None and line == "```":
                yield block
                block = None
            elif block is not None:
                block[2].append(line)


def read_only_block(kind, path):
    found = [lines for _, words, lines in read_blocks(path) if words == [kind]]
    if len(found) != 1:
        raise SystemExit(f"there are {len(found)} blocks of {kind}")
    return "\n".join(found[0]) + "\n"


def read_examples(path):
    examples = []
    for line, words, lines in read_blocks(path):
        if words and words[0] in ("resp", "http"):
            example = Example(line, words)
            for text in lines:
                example.add(text)
            examples.append(example)
    return examples


# ---- comparing


def fill_in(text, names):
    return NAME.sub(lambda match: names.get(match[1], match[0]), text)


def is_match(expected, got, names):
    """Whether it is what was expected; what stands for a $name is kept in names."""
    pattern = ""
    for part in re.split(r"(…|\$[a-z_]+)", fill_in(expected, names)):
        if part == "…":
            pattern += ".*"
        elif NAME.fullmatch(part):
            pattern += rf'(?P<{part[1:]}>[^\s,"\]}}]+)'
        else:
            pattern += re.escape(part)
    match = re.fullmatch(pattern, got, re.DOTALL)
    if match:
        names.update(match.groupdict())
    return bool(match)


def check(what, expected, got, names):
    if not is_match(expected, got, names):
        raise AssertionError(f"{what}\nexpected {expected}\ngot      {got}")


# ---- RESP


class Failure(str):
    """An error reply."""


def read_reply(stream):
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise AssertionError("the connection was closed")
    kind, text = line[:1], line[1:-2].decode()
    if kind == b"+":
        return text
    if kind == b"-":
        return Failure(text)
    if kind == b":":
        return int(text)
    if kind == b"_" or text == "-1":
        return None
    if kind == b"$":
        return stream.read(int(text) + 2)[:-2].decode()
    if kind == b"*":
        return [read_reply(stream) for _ in range(int(text))]
    if kind == b"%":
        return {read_reply(stream): read_reply(stream) for _ in range(int(text))}
    raise AssertionError(f"an unknown kind of reply: {line}")


def is_document(text):
    try:
        return isinstance(json.loads(text), (dict, list))
    except ValueError:
        return False


def show(reply):
    if isinstance(reply, Failure):
        return f"(error) {reply}"
    if isinstance(reply, str) and ("\n" in reply or is_document(reply)):
        return reply.replace("\r", "").strip()
    return json.dumps(reply, ensure_ascii=False)


def connect(example, unix_path, settings):
    if not example.is_tcp:
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(PATIENCE_S)
        peer.connect(unix_path)
        return peer
    host, port = re.search(r'tcp: "([\d.]+):(\d+)"', settings).groups()
    return socket.create_connection((host, int(port)), PATIENCE_S)


def run_resp(example, unix_path, settings):
    names = {}
    with connect(example, unix_path, settings) as peer, peer.makefile("rb") as stream:
        for (command,), came in example.exchanges:
            words = [word.encode() for word in shlex.split(fill_in(command, names))]
            request = b"*%d\r\n" % len(words)
            for word in words:
                request += b"$%d\r\n%s\r\n" % (len(word), word)
            peer.sendall(request)
            check(command, "\n".join(came), show(read_reply(stream)), names)


# ---- HTTP


def split_message(lines):
    """First line, header lines, body or None."""
    if "" not in lines:
        return lines[0], lines[1:], None
    at = lines.index("")
    return lines[0], lines[1:at], "\n".join(lines[at + 1 :])


def run_http(example, _unix_path, settings):
    names = {}
    address = re.search(r'http: "([\d.:]+)"', settings)[1]
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    for sent, came in example.exchanges:
        request, headers, body = split_message([fill_in(line, names) for line in sent])
        method, path = request.split(" ")
        connection.request(method, path, body, dict(line.split(": ", 1) for line in headers))
        answer = connection.getresponse()
        text = answer.read().decode()
        status, headers, body = split_message(came)
        check(request, status, f"{answer.status}", names)
        for line in headers:
            name, value = line.split(": ", 1)
            check(f"{request}: {name}", value, answer.headers.get(name, "(none)"), names)
        if body is not None:
            check(request, body, text.strip("\n"), names)
    connection.close()


def run(path, unix_path):
    settings = read_only_block("yaml", path)
    examples = read_examples(path)
    if not examples:
        print(f"not ok\t{path}\tit has no examples")
    for example in examples:
        name = f"line {example.line}: {example.title()}"
        try:
            {"resp": run_resp, "http": run_http}[example.kind](example, unix_path, settings)
            print(f"ok\t{name}")
        except (AssertionError, OSError, ValueError, http.client.HTTPException) as trouble:
            why = str(trouble).replace("\\", "\\\\").replace("\n", "\\n")
            print(f"not ok\t{name}\t{type(trouble).__name__}: {why}")


# ---- what there is


def list_commands(path):
    for example in read_examples(path):
        if example.kind == "resp":
            for (command,), _ in example.exchanges:
                print(command.split()[0].lower())


def list_routes(path):
    for example in read_examples(path):
        if example.kind == "http":
            for sent, _ in example.exchanges:
                method, target = sent[0].split(" ")
                print(method, re.sub("/tenants/[^/]+/", "/tenants/{tenant}/", target.split("?")[0]))


if __name__ == "__main__":
    if sys.argv[1] == "block":
        print(read_only_block(sys.argv[2], sys.argv[3]), end="")
    elif sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "commands":
        list_commands(sys.argv[2])
    elif sys.argv[1] == "routes":
        list_routes(sys.argv[2])
    else:
        raise SystemExit(__doc__)
