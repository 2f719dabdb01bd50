// docs/reference/gateway-options.md: every option of spillway.yaml, from the JSON Schema of the gateway.

import { readComment } from './comments.mjs'

const DURATION = '(ms|s|m|h|d)'
const SIZE = '[kKmMgG]?[bB]'
const REFERENCE = '^\\s*(env:'

/**
 * @param {object} schema with descriptions
 * @returns {{ title: string, options: object[] }[]} one section for each object; equal objects have one section
 */
export function gatewaySections(schema) {
  const sections = []
  const titles = new Map()
  addSection('spillway.yaml', '', schema)
  return sections

  /** Returns the title of the section that describes the object. */
  function addSection(title, prefix, object) {
    const { properties, required = [] } = object
    const known = titles.get(JSON.stringify(object))
    if (known !== undefined) return known
    titles.set(JSON.stringify(object), title)
    const section = { title, options: [] }
    sections.push(section)
    for (const [name, option] of Object.entries(properties)) {
      const path = `${prefix}${name}`
      const isRequired = required.includes(name)
      const link = objectsIn(option, path).map(({ at, inner }) =>
        addSection(at, `${at}.`, inner),
      )[0]
      section.options.push({ name, path, schema: option, isRequired, link })
    }
    return title
  }
}

/** The objects with options of their own in a value: itself, its alternatives, its items, its entries by name. */
function objectsIn(schema, at) {
  if (schema === undefined || typeof schema !== 'object') return []
  if (schema.properties !== undefined) return [{ at, inner: schema }]
  return [
    ...(schema.anyOf ?? []).flatMap((each) => objectsIn(each, at)),
    ...objectsIn(schema.items, `${at}[]`),
    ...objectsIn(schema.additionalProperties, `${at}.NAME`),
  ]
}

/** The cells of an option's row. A default or range in the description is used if the check has none. */
export function readOption({ schema, isRequired }) {
  const { meaning, range, fallback } = readComment(schema.description ?? '')
  return {
    meaning,
    type: typeOf(schema),
    range: range ?? rangeOf(schema),
    fallback: schema.default === undefined ? fallback : valueText(schema.default, schema),
    isRequired,
  }
}

export function gatewayOptionsPage(sections) {
  return [
    '# Gateway options',
    '',
    'Every option of `spillway.yaml`. [Configuration](../gateway/configuration.md) explains them with examples. `NAME` stands for',
    'a name that you choose, `[]` for each item of a list. The same texts are in the JSON Schema that `spillway schema` prints,',
    'so editors show them.',
    '',
    '- A **duration** is a number of milliseconds, or has a unit: `250ms`, `5s`, `1.5m`, `2h`, `1d`.',
    '- A **size** is a number of bytes, or has a unit: `64kb`, `1mb`. A kilobyte has 1024 bytes.',
    '- A **reference** is `env:NAME` for an environment variable, or `file:PATH` for the contents of a file.',
    '',
    ...sections.flatMap(({ title, options }) => [
      `## ${title}`,
      '',
      '| Option | Type | Default | Range | Meaning |',
      '|---|---|---|---|---|',
      ...options.map(row),
      '',
    ]),
  ].join('\n')
}

function row(option) {
  const { meaning, type, range, fallback, isRequired } = readOption(option)
  const shown = option.link === undefined ? type : `[${type}](#${slugOf(option.link)})`
  const cells = [shown, isRequired ? 'required' : (fallback ?? 'none'), range, meaning]
  return `| \`${option.name}\` | ${cells.map(cell).join(' | ')} |`
}

/** The anchor that VitePress gives to a heading. */
function slugOf(title) {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/-$/, '')
}

function typeOf(schema) {
  const { anyOf, type, pattern = '' } = schema
  if (schema.enum !== undefined) return schema.enum.map(literal).join(', ')
  if (schema.const !== undefined) return literal(schema.const)
  if (isDuration(schema)) return 'duration'
  if (isSize(schema)) return 'size'
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeOf))].join(' or ')
  if (type === 'string') return textType(pattern)
  if (type === 'array') return `list of ${plural(typeOf(schema.items))}`
  if (type === 'object') return schema.properties === undefined ? mapOf(schema) : 'object'
  return type ?? 'any value'
}

function mapOf({ additionalProperties }) {
  return `${typeOf(additionalProperties)} by name`
}

function textType(pattern) {
  if (!pattern.startsWith(REFERENCE)) return 'text'
  return pattern.includes('rediss') ? 'reference or URL' : 'reference'
}

function plural(type) {
  return type.replace(/\b(text|object|reference|URL)\b/g, '$1s')
}

function literal(value) {
  return `\`${value}\``
}

function isDuration({ anyOf }) {
  return anyOf?.length === 2 && anyOf[1].pattern?.includes(DURATION) === true
}

function isSize({ anyOf }) {
  return anyOf?.length === 2 && anyOf[1].pattern?.includes(SIZE) === true
}

function rangeOf(schema) {
  if (isDuration(schema)) return bounds(schema.anyOf[0], (ms) => durationText(ms))
  if (isSize(schema)) return bounds(schema.anyOf[0], sizeText)
  const ranges = (schema.anyOf ?? [schema]).map((each) => bounds(each, count)).filter(Boolean)
  return ranges[0]
}

function bounds({ type, minimum, maximum, exclusiveMinimum, maxLength, minItems }, show) {
  if (maxLength !== undefined) return `at most ${maxLength} characters`
  if (minItems !== undefined) return `at least ${minItems}`
  if (exclusiveMinimum !== undefined) {
    return `above ${show(exclusiveMinimum)}${maximum === undefined ? '' : `, up to ${show(maximum)}`}`
  }
  if (minimum === undefined) return undefined
  const numbers = type === 'integer' && show === count ? 'integers ' : ''
  if (maximum === undefined) return `${numbers}from ${show(minimum)}`
  return `${numbers}${numbers && 'from '}${show(minimum)} to ${show(maximum)}`
}

function valueText(value, schema) {
  if (isDuration(schema)) return durationText(value)
  if (isSize(schema)) return sizeText(value)
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(literal).join(', ')
  return typeof value === 'number' ? count(value) : literal(value)
}

const count = (number) => (number < 10_000 ? String(number) : number.toLocaleString('en'))
const DURATIONS = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1_000, 'second'],
]

function durationText(ms) {
  const [unit, word] = DURATIONS.find(([size]) => ms >= size && ms % size === 0) ?? []
  if (unit === undefined) return `${count(ms)} ms`
  return `${count(ms / unit)} ${word}${ms === unit ? '' : 's'}`
}

const SIZES = [
  [1_024 ** 2, 'MB'],
  [1_024, 'KB'],
]

function sizeText(bytes) {
  const [unit, word] = SIZES.find(([size]) => bytes >= size && bytes % size === 0) ?? []
  if (unit !== undefined) return `${count(bytes / unit)} ${word}`
  return `${count(bytes)} byte${bytes === 1 ? '' : 's'}`
}

function cell(text) {
  return (text ?? '').replace(/(?<!\\)\|/g, '\\|').replaceAll('<', '&lt;')
}
