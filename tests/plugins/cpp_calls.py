"""A driver in one file: C++, by g++, which compiles and runs a program in one box. Types are the signature's."""

import re
import shutil
from collections.abc import Callable, Sequence
from typing import Any

from codechat.base.domain import Verdict
from codechat.base.errors import UserError
from codechat.sandbox import Box, Command, SandboxConfig
from codechat.sandbox.suites.calls.drivers import Called, Ready, leaves, register

RUNNER = r"""
#include <bits/stdc++.h>
#include <unistd.h>
#include "program.cpp"

namespace driver {
std::string data;
size_t at = 0;
int32_t size() { int32_t n; memcpy(&n, &data[at], 4); at += 4; return n; }

template <class T> struct Form;
template <> struct Form<long long> {
  static long long read() {
    char kind = data[at++];
    if (kind == 'i') return size();
    int count = size();
    long long value = 0;
    for (int place = 0; place < abs(count); place++, at += 2) {
      uint16_t digit; memcpy(&digit, &data[at], 2); value |= (long long)digit << 15 * place;
    }
    return count < 0 ? -value : value;
  }
  static void write(std::string& to, long long value) {
    std::string digits;
    unsigned long long left = value < 0 ? 0ULL - value : value;
    int32_t count = 0;
    for (; left; left >>= 15, count++) { uint16_t digit = left & 32767; digits.append((char*)&digit, 2); }
    if (value < 0) count = -count;
    to += 'l'; to.append((char*)&count, 4); to += digits;
  }
};
template <> struct Form<int> {
  static int read() { return (int)Form<long long>::read(); }
  static void write(std::string& to, int value) { to += 'i'; to.append((char*)&value, 4); }
};
template <> struct Form<double> {
  static double read() {
    if (data[at] != 'g') return (double)Form<long long>::read();
    double value; memcpy(&value, &data[at + 1], 8); at += 9; return value;
  }
  static void write(std::string& to, double value) { to += 'g'; to.append((char*)&value, 8); }
};
template <> struct Form<bool> {
  static bool read() { return data[at++] == 'T'; }
  static void write(std::string& to, bool value) { to += value ? 'T' : 'F'; }
};
template <> struct Form<std::string> {
  static std::string read() { at++; int32_t n = size(); at += n; return data.substr(at - n, n); }
  static void write(std::string& to, const std::string& value) {
    int32_t n = value.size(); to += 'u'; to.append((char*)&n, 4); to += value;
  }
};
template <class T> struct Form<std::vector<T>> {
  static std::vector<T> read() {
    at++;
    std::vector<T> all;
    for (int32_t left = size(); left > 0; left--) all.push_back(Form<T>::read());
    return all;
  }
  static void write(std::string& to, const std::vector<T>& value) {
    int32_t n = value.size(); to += '['; to.append((char*)&n, 4);
    for (const T& each : value) Form<T>::write(to, each);
  }
};
void send(char kind, const std::string& payload = "") {
  uint32_t n = payload.size();
  std::string frame(1, kind);
  frame.append((char*)&n, 4).append(2, '\0').append(payload);
  for (size_t done = 0; done < frame.size();) {
    ssize_t more = ::write(3, &frame[done], frame.size() - done);
    if (more <= 0) _exit(4);
    done += more;
  }
}
template <class R, class... A> R call(R (*function)(A...)) {
  std::tuple<std::decay_t<A>...> given{Form<std::decay_t<A>>::read()...};
  return std::apply(function, given);
}
void all(bool timed) {
  std::ifstream file("arguments", std::ios::binary);
  data.assign(std::istreambuf_iterator<char>(file), {});
  send('L');
  at = 1;
  for (int32_t left = size(); left > 0; left--) {
    at += 5;
    clock_t began = clock();
    auto value = call(&ENTRY);
    std::string to;
    Form<decltype(value)>::write(to, value);
    double took = (double)(clock() - began) / CLOCKS_PER_SEC;
    if (timed) send('T', std::string((char*)&took, 8));
    send('V', to);
  }
  send('Z');
  _exit(0);
}
}

int main(int, char** words) { driver::all(words[1]); }
"""
TYPES: dict[str, Callable[[Any], bool]] = {
    "int": lambda value: type(value) is int and -(2**31) <= value < 2**31,
    "long long": lambda value: type(value) is int and -(2**63) < value < 2**63,
    "double": lambda value: type(value) is float or (type(value) is int and abs(value) <= 2**53),
    "bool": lambda value: type(value) is bool,
    "string": lambda value: type(value) is str,
}


class Cpp:
    """A function of `int`, `long long`, `double`, `bool`, `string` and vectors of them."""

    language, version = "cpp", 1

    def tools(self, config: SandboxConfig, note: Callable[[str], None]) -> Sequence[str]:
        if shutil.which("g++") is None:
            raise UserError("tests in C++ need g++", "apt install g++")
        return ()

    def inexpressible(self, arguments: Sequence[Any], signature: str) -> str:
        types = re.findall(r"[(,]\s*(?:std::|vector|<)*(int|long long|double|bool|string)\b", signature)
        if len(types) != len(arguments):
            return f"{len(arguments)} arguments for {len(types)} parameters"
        pairs = ((name, leaf) for name, given in zip(types, arguments, strict=True) for leaf in leaves(given))
        return next((f"{leaf!r:.40} as {name}" for name, leaf in pairs if not TYPES[name](leaf)), "")

    def ready(self, called: Called, box: Box, config: SandboxConfig) -> Ready | Verdict:
        build = (
            f"g++ -std=c++17 -O1 -w -DENTRY={called.entry_point} -o run runner.cpp 2>&1 >/dev/null | head -c 1500 >&2"
        )
        script = f"exec 3>&1 >/dev/null; {build}; test -x run || exec printf 'S\\0\\0\\0\\0\\0\\0' >&3; printf '\\f' >&2; exec ./run {'timed' * called.timed}"
        files = {"runner.cpp": RUNNER.encode(), "program.cpp": called.source.encode("utf-8", "replace")}
        return Ready(Command(argv=("/bin/sh", "-c", script), files=files), alone=False)


register(Cpp())
