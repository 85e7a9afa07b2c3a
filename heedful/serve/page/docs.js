// The routes of the server, as its openapi.json describes them.
import { byId, get, make, remember, state } from "./common.js";

const kindOf = (shape) => {
  if (shape.const !== undefined) return JSON.stringify(shape.const);
  if (shape.enum) return shape.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (shape.anyOf) return shape.anyOf.map(kindOf).filter((kind) => kind !== "null").join(" or ");
  if (shape.type === "array") return `list of ${kindOf(shape.items ?? {})}`;
  return shape.format === "binary" ? "file" : { string: "text", integer: "whole number" }[shape.type] ?? shape.type ?? "any";
};

const BOUNDS = { minimum: "at least", maximum: "at most", minLength: "at least", maxLength: "at most", minItems: "at least", maxItems: "at most" };
const boundsOf = (shape) => [shape, ...(shape.anyOf ?? [])].flatMap((each) => Object.entries(BOUNDS).filter(([key]) => each[key] !== undefined)
  .map(([key, word]) => `${word} ${each[key].toLocaleString("en")}${key.endsWith("Length") ? " characters" : key.endsWith("Items") ? " of them" : ""}`)).join(", ");

// The fields of an object, and below it those of the objects in it.
function fields({ properties = {}, required = [] }, before = "") {
  return Object.entries(properties).flatMap(([name, shape]) => {
    const inner = [shape, ...(shape.anyOf ?? [])].find((each) => each.properties);
    return [{ name: before + name, needed: required.includes(name), kind: kindOf(shape), bounds: boundsOf(shape), about: shape.description ?? "" },
      ...(inner ? fields(inner, `${before}${name}.`) : [])];
  });
}

function body([type, { schema }]) {
  const rows = fields(schema).map(({ name, needed, kind, bounds, about }) =>
    make("tr", {}, make("th", { scope: "row" }, make(needed ? "b" : "span", { textContent: name })), make("td", { textContent: kind }), make("td", { textContent: bounds }), make("td", { textContent: about })));
  return [make("p", { className: "quiet", textContent: type }), make("table", { className: "twin fields" }, make("tbody", {}, ...rows))];
}

// A text with its parts between backticks as code.
const coded = (text) => text.split("`").map((part, i) => (i % 2 ? make("code", { textContent: part }) : part));

function route(path, method, { tags = [], description = "", requestBody, parameters = [] }) {
  const bodies = Object.entries(requestBody?.content ?? {});
  const query = parameters.filter((each) => each.in === "query").map(({ name, schema }) => make("p", {}, make("code", { textContent: name }), ` in the address: ${kindOf(schema)}`));
  const summary = make("summary", {}, make("b", { textContent: method.toUpperCase() }), " ", make("code", { textContent: path }), make("span", { className: "quiet" }, " ", ...coded([...tags, description].filter(Boolean).join(": "))));
  return make("details", { className: "route" }, summary, ...query, ...bodies.flatMap(body), ...(bodies.length || query.length ? [] : [make("p", { className: "quiet", textContent: "It takes nothing." })]));
}

const { paths } = await get("openapi.json");
const all = Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, how]) => [path, method, how]));
const show = () => {
  const words = byId("filter").value.toLowerCase();
  byId("routes").replaceChildren(...all.filter(([path, method]) => `${method} ${path}`.includes(words)).map((each) => route(...each)));
};
byId("filter").value = state().filter ?? "";
byId("filter").addEventListener("input", () => { remember({ filter: byId("filter").value }); show(); });
show();
