// What a host's hook code is given in place of the rest of the host: an object that can be called, read and extended.
"use strict";

const stub = new Proxy(function () {}, {
  get: (target, key) => {
    if (key === Symbol.toPrimitive) return () => "stub";
    if (key === "prototype") return target.prototype;
    return key === "then" || typeof key === "symbol" ? undefined : stub;
  },
  apply: () => stub,
  construct: () => ({}),
  set: () => true,
});

// The text of the class or function that has a marker, from its first word to its last brace.
function textAt(text, start) {
  for (let at = text.indexOf("{", start), depth = 0; at < text.length; at++) {
    if (text[at] === "{") depth++;
    else if (text[at] === "}" && --depth === 0) return text.slice(start, at + 1);
  }
  throw new Error("the host's code has another form");
}

function find(text, marker, beginning) {
  const at = text.indexOf(marker);
  if (at < 0) throw new Error(`the host's code has no ${marker}`);
  return textAt(text, text.lastIndexOf(beginning, at));
}

// Evaluates a text of the host. What it needs and is not among `known` is a stub.
function evaluate(text, known) {
  const scope = new Proxy(known, {
    has: (target, key) => typeof key === "string" && (key in target || !(key in globalThis)),
    get: (target, key) => (key in target ? target[key] : key === Symbol.unscopables ? undefined : stub),
  });
  return new Function("scope", `with (scope) { return ${text} }`)(scope);
}

module.exports = { stub, find, textAt, evaluate };
